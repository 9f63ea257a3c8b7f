package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolsevents "k8s.io/client-go/tools/events"
	toolsrecord "k8s.io/client-go/tools/record"
)

// order is a command on the standard input of a recorder.
type order struct {
	Do       string
	About    corev1.ObjectReference
	Type     string
	Reason   string
	Message  string
	Selector string
	Name     string
}

// record carries out the orders on its standard input, one object in JSON a line, until that ends.
func record(ctx context.Context, config *rest.Config, given settings) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	write, shutdown := recorder(ctx, client, given)
	defer shutdown()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var next order
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			return err
		}
		switch next.Do {
		case "record":
			write(next)
			emit("recorded", nil)
		case "list":
			found, err := list(ctx, client, given, next.Selector)
			emitResult("list", found, err)
		case "search":
			// What `kubectl describe` does.
			found, err := client.CoreV1().Events(next.About.Namespace).Search(scheme.Scheme, &next.About)
			emitResult("list", found, err)
		case "delete":
			emitResult("deleted", nil, client.CoreV1().Events(given.namespace).Delete(ctx, next.Name, metav1.DeleteOptions{}))
		default:
			return fmt.Errorf("%q cannot be done", next.Do)
		}
	}
	return lines.Err()
}

func emitResult(what string, result any, err error) {
	if err != nil {
		emit("failed", map[string]any{"error": err.Error()})
		return
	}
	emit(what, map[string]any{"result": result})
}

// recorder gives the way to record an event in either API. Functions that take no context are those that old releases
// have too.
func recorder(ctx context.Context, client kubernetes.Interface, given settings) (func(order), func()) {
	if given.api == "v1" {
		broadcaster := toolsrecord.NewBroadcaster()
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: given.name})
		return func(next order) {
			recorder.Event(&next.About, next.Type, next.Reason, next.Message)
		}, broadcaster.Shutdown
	}
	broadcaster := toolsevents.NewBroadcaster(&toolsevents.EventSinkImpl{Interface: client.EventsV1()})
	broadcaster.StartRecordingToSink(ctx.Done())
	recorder := broadcaster.NewRecorder(scheme.Scheme, given.name)
	return func(next order) {
		recorder.Eventf(&next.About, nil, next.Type, next.Reason, "Testing", "%s", next.Message)
	}, broadcaster.Shutdown
}

func list(ctx context.Context, client kubernetes.Interface, given settings, selector string) (any, error) {
	options := metav1.ListOptions{FieldSelector: selector}
	if given.api == "v1" {
		return client.CoreV1().Events(given.namespace).List(ctx, options)
	}
	return client.EventsV1().Events(given.namespace).List(ctx, options)
}
