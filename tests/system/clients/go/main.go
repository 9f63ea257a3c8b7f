// Clients that are made of public libraries only, each as small as the library allows. Every line of their output is an
// object in JSON; the tests in Python start them and check the lines.
//
//	clients elect    a candidate of a leader election
//	clients record   an event recorder, which reads commands from its standard input
//	clients inform   informers
//	clients manage   a controller-runtime manager with a controller of clusters
//	clients certify  a user that requests a client certificate
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// settings are the flags that all clients have.
type settings struct {
	kubeconfig  string
	contentType string
	namespace   string
	name        string
	identity    string
	lease       time.Duration
	resync      time.Duration
	resources   resourceList
	metadata    bool
	api         string
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("a command is needed"))
	}
	commands := map[string]func(context.Context, *rest.Config, settings) error{
		"elect": elect, "record": record, "inform": inform, "manage": manage, "certify": certify,
	}
	run, known := commands[os.Args[1]]
	if !known {
		fail(fmt.Errorf("%q is not a command", os.Args[1]))
	}
	given := parse(os.Args[2:])
	config, err := clientcmd.BuildConfigFromFlags("", given.kubeconfig)
	if err != nil {
		fail(err)
	}
	config.ContentType = given.contentType
	config.Wrap(emitResponses)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, config, given); err != nil {
		fail(err)
	}
}

func parse(arguments []string) settings {
	var given settings
	flags := flag.NewFlagSet("clients", flag.ExitOnError)
	flags.StringVar(&given.kubeconfig, "kubeconfig", "", "how to reach the server")
	flags.StringVar(&given.contentType, "content-type", protobuf, "what typed clients send and accept")
	flags.StringVar(&given.namespace, "namespace", "default", "the namespace of what is read or written")
	flags.StringVar(&given.name, "name", "", "the name of the Lease, the request, or the reporting component")
	flags.StringVar(&given.identity, "identity", "", "the identity of a candidate, or the user of a certificate")
	flags.DurationVar(&given.lease, "lease", 5*time.Second, "how long a leader leads, or a certificate is valid, without renewal")
	flags.DurationVar(&given.resync, "resync", 0, "how often an informer repeats what it knows")
	flags.Var(&given.resources, "resource", "a resource to inform of, such as coordination.k8s.io/v1/leases")
	flags.BoolVar(&given.metadata, "metadata", false, "inform of metadata only")
	flags.StringVar(&given.api, "api", "v1", "the API of events: v1 or events.k8s.io/v1")
	_ = flags.Parse(arguments)
	return given
}

var output sync.Mutex

// emit writes one line. Callbacks of libraries run at the same time.
func emit(what string, about map[string]any) {
	line := map[string]any{"what": what}
	for key, value := range about {
		line[key] = value
	}
	output.Lock()
	defer output.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "clients:", err)
	os.Exit(1)
}
