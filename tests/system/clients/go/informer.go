package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// resourceList is a flag that may be given several times.
type resourceList []schema.GroupVersionResource

func (list *resourceList) String() string { return fmt.Sprint(*list) }

func (list *resourceList) Set(text string) error {
	path, resource, found := cutLast(text, "/")
	if !found {
		return fmt.Errorf("%q is not VERSION/RESOURCE or GROUP/VERSION/RESOURCE", text)
	}
	version, err := schema.ParseGroupVersion(path)
	if err != nil {
		return err
	}
	*list = append(*list, version.WithResource(resource))
	return nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return text, "", false
}

// inform emits every change of some resources, in one namespace or in all, until SIGTERM.
func inform(ctx context.Context, config *rest.Config, given settings) error {
	find, err := informerFactory(config, given)
	if err != nil {
		return err
	}
	for _, resource := range given.resources {
		informer, err := find(resource)
		if err != nil {
			return err
		}
		if err := watch(informer, resource.Resource); err != nil {
			return err
		}
		go informer.Run(ctx.Done())
		go func() {
			if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				emit("synced", map[string]any{"resource": resource.Resource, "keys": informer.GetStore().ListKeys()})
			}
		}()
	}
	<-ctx.Done()
	return nil
}

func informerFactory(
	config *rest.Config, given settings,
) (func(schema.GroupVersionResource) (cache.SharedIndexInformer, error), error) {
	if given.metadata {
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := metadatainformer.NewFilteredSharedInformerFactory(client, given.resync, given.namespace, nil)
		return func(resource schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			return factory.ForResource(resource).Informer(), nil
		}, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(
		client, given.resync, informers.WithNamespace(given.namespace),
	)
	return func(resource schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
		generic, err := factory.ForResource(resource)
		if err != nil {
			return nil, err
		}
		return generic.Informer(), nil
	}, nil
}

func watch(informer cache.SharedIndexInformer, resource string) error {
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		emit("watch error", map[string]any{
			"resource": resource, "error": err.Error(),
			"expired": apierrors.IsResourceExpired(err) || apierrors.IsGone(err),
		})
	}); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(found any) { emitObject("added", resource, found, nil) },
		UpdateFunc: func(before, after any) {
			what := "updated"
			if versionOf(before) == versionOf(after) {
				what = "resynced"
			}
			emitObject(what, resource, after, nil)
		},
		DeleteFunc: func(gone any) {
			if unknown, missed := gone.(cache.DeletedFinalStateUnknown); missed {
				emitObject("deleted", resource, unknown.Obj, map[string]any{"missed": true})
				return
			}
			emitObject("deleted", resource, gone, nil)
		},
	})
	return err
}

func emitObject(what, resource string, object any, further map[string]any) {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		fail(err)
	}
	about := map[string]any{"resource": resource, "key": key, "resourceVersion": versionOf(object), "object": object}
	for name, value := range further {
		about[name] = value
	}
	emit(what, about)
}

func versionOf(object any) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		fail(err)
	}
	return accessor.(metav1.Object).GetResourceVersion()
}
