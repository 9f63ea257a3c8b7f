package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolsrecord "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "example.com/manager"

var clusterKind = schema.GroupVersionKind{Group: "clusterregistry.k8s.io", Version: "v1alpha1", Kind: "Cluster"}

// manage runs a manager that leads by a Lease, with a controller as operators write it: a finalizer, an object that the
// cluster owns in a namespace, a status, an event.
func manage(ctx context.Context, config *rest.Config, given settings) error {
	ctrl.SetLogger(logr.Discard())
	config.ContentType = "" // its clients choose between JSON and protobuf by themselves
	renew, retry := given.lease*2/3, given.lease/10
	manager, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:                true,
		LeaderElectionID:              given.name,
		LeaderElectionNamespace:       given.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &given.lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{given.namespace: {}}},
		// As operators have it that read custom resources without types.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	controller := &clusterController{
		client: manager.GetClient(), events: manager.GetEventRecorderFor(given.name), namespace: given.namespace,
	}
	if err := ctrl.NewControllerManagedBy(manager).
		For(cluster()).Owns(&coordinationv1.Lease{}).Complete(controller); err != nil {
		return err
	}
	go func() {
		<-manager.Elected()
		emit("leads", map[string]any{"identity": given.identity})
	}()
	emit("candidate", map[string]any{"identity": given.identity})
	return manager.Start(ctx)
}

func cluster() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(clusterKind)
	return object
}

type clusterController struct {
	client    client.Client
	events    toolsrecord.EventRecorder
	namespace string
}

// Reconcile gives a cluster a finalizer, a Lease and a condition, and removes the finalizer when it is deleted.
func (c *clusterController) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := cluster()
	if err := c.client.Get(ctx, request.NamespacedName, found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if found.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, c.release(ctx, found)
	}
	if controllerutil.AddFinalizer(found, finalizer) {
		return ctrl.Result{}, c.client.Update(ctx, found)
	}
	if err := c.keepLease(ctx, found); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, c.writeStatus(ctx, found)
}

func (c *clusterController) release(ctx context.Context, found *unstructured.Unstructured) error {
	if !controllerutil.RemoveFinalizer(found, finalizer) {
		return nil
	}
	if err := c.client.Update(ctx, found); err != nil {
		return err
	}
	emit("released", map[string]any{"name": found.GetName()})
	return nil
}

func (c *clusterController) keepLease(ctx context.Context, found *unstructured.Unstructured) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: found.GetName()}}
	result, err := controllerutil.CreateOrUpdate(ctx, c.client, lease, func() error {
		holder := string(found.GetUID())
		lease.Spec.HolderIdentity = &holder
		return controllerutil.SetControllerReference(found, lease, c.client.Scheme())
	})
	if err == nil && result != controllerutil.OperationResultNone {
		emit("lease", map[string]any{"name": lease.Name, "result": string(result)})
	}
	return err
}

func (c *clusterController) writeStatus(ctx context.Context, found *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(found.Object, "status", "conditions")
	if err != nil || len(conditions) > 0 {
		return err
	}
	before := found.DeepCopy()
	condition := map[string]any{
		"type": "OK", "status": "True", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
	if err := unstructured.SetNestedSlice(found.Object, []any{condition}, "status", "conditions"); err != nil {
		return err
	}
	if err := c.client.Status().Patch(ctx, found, client.MergeFrom(before)); err != nil {
		return err
	}
	c.events.Eventf(found, corev1.EventTypeNormal, "Observed", "generation %d was observed", found.GetGeneration())
	emit("reconciled", map[string]any{"name": found.GetName(), "generation": found.GetGeneration()})
	return nil
}
