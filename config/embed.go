// Package config holds the manifests of the-loop, so that programs can apply what
// they were built with.
package config

import "embed"

// Manifests are the CRDs, the roles, the admission policies and the samples.
//
//go:embed crd/bases/*.yaml rbac/*.yaml policy/*.yaml samples/*.yaml
var Manifests embed.FS
