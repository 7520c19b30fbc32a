//go:build tools

package main

// The commands that this module builds, imported so that `go mod tidy` keeps
// their dependencies in go.mod. Never compiled: commands cannot be imported.
import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
