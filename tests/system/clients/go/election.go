package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	toolsrecord "k8s.io/client-go/tools/record"
)

// elect runs a candidate until SIGTERM. A leader that gets it releases its Lease.
func elect(ctx context.Context, config *rest.Config, given settings) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	broadcaster := toolsrecord.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	lock, err := resourcelock.New(
		resourcelock.LeasesResourceLock, given.namespace, given.name, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{
			Identity:      given.identity,
			EventRecorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: given.identity}),
		},
	)
	if err != nil {
		return err
	}
	emit("candidate", map[string]any{"identity": given.identity})
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		ReleaseOnCancel: true,
		LeaseDuration:   given.lease,
		RenewDeadline:   given.lease * 2 / 3,
		RetryPeriod:     given.lease / 10,
		Name:            given.name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { emit("leads", map[string]any{"identity": given.identity}) },
			OnStoppedLeading: func() { emit("stopped", map[string]any{"identity": given.identity}) },
			OnNewLeader:      func(leader string) { emit("leader", map[string]any{"identity": leader}) },
		},
	})
	// The event of the end is written in the background, and no call of the library waits for it.
	time.Sleep(time.Second)
	return nil
}
