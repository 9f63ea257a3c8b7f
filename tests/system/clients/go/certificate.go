package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

// certify requests a client certificate as the kubelet does, waits until it is issued, and emits it with its key.
func certify(ctx context.Context, config *rest.Config, given settings) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	request, err := cert.MakeCSR(key, &pkix.Name{CommonName: given.identity}, nil, nil)
	if err != nil {
		return err
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	name, uid, err := csr.RequestCertificate(
		client, request, given.name, certificatesv1.KubeAPIServerClientSignerName, &given.lease, usages, key,
	)
	if err != nil {
		return err
	}
	emit("requested", map[string]any{"name": name, "uid": string(uid)})
	certificate, err := csr.WaitForCertificate(ctx, client, name, uid)
	if err != nil {
		return err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	emit("issued", map[string]any{"certificate": string(certificate), "key": string(encoded)})
	return nil
}
