package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The modules whose versions are the versions of the control plane.
const (
	selfModule = "github.com/theloop-dev/the-loop/hack/controlplane"
	k8sModule  = "k8s.io/kubernetes"
	etcdModule = "go.etcd.io/etcd/server/v3"
)

// pins is what go.mod and go.sum say about the control plane.
type pins struct {
	k8s, etcd string // versions, with their v
	k8sSum    string // checksum of the Kubernetes module in go.sum, h1:...
	goVersion string // lowest version of Go that go.mod accepts
	modHash   string // hex hash of go.mod without comments and layout
}

// target is one binary: its file name, the package of its main and its version.
type target struct {
	name, pkg, version string
}

// targets lists the binaries in the order in which they are built.
func (p pins) targets(kubectl bool) []target {
	ts := []target{
		{name: "etcd", pkg: etcdModule, version: p.etcd},
		{name: "kube-apiserver", pkg: k8sModule + "/cmd/kube-apiserver", version: p.k8s},
	}
	if kubectl {
		ts = append(ts, target{name: "kubectl", pkg: k8sModule + "/cmd/kubectl", version: p.k8s})
	}
	return ts
}

// readPins reads go.mod and go.sum in dir, which must be this module.
func readPins(dir string) (pins, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, os.ErrNotExist) {
		return pins{}, errors.New("there is no go.mod in the working directory: run it as `go run -C hack/controlplane .`")
	}
	if err != nil {
		return pins{}, fmt.Errorf("cannot read the pinned versions: %w", err)
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return pins{}, fmt.Errorf("cannot read the pinned checksums: %w", err)
	}
	return parsePins(string(mod), string(sum))
}

// A version as the module system writes it, with only what a directory name and
// a linker flag can carry.
var versionRE = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+incompatible)?$`)

// parsePins reads the texts of go.mod and go.sum.
func parsePins(mod, sum string) (pins, error) {
	var p pins
	var module string
	canon := sha256.New()
	block := ""
	for line := range strings.Lines(mod) {
		code, _, _ := strings.Cut(line, "//")
		words := strings.Fields(code)
		if len(words) == 0 {
			continue
		}
		switch {
		case words[0] == ")":
			block = ""
			continue
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		case block != "":
			words = append([]string{block}, words...)
		}
		fmt.Fprintln(canon, strings.Join(words, " "))
		switch {
		case words[0] == "module" && len(words) == 2:
			module = words[1]
		case words[0] == "go" && len(words) == 2:
			p.goVersion = words[1]
		case words[0] == "require" && len(words) >= 3 && words[1] == k8sModule:
			p.k8s = words[2]
		case words[0] == "require" && len(words) >= 3 && words[1] == etcdModule:
			p.etcd = words[2]
		}
	}
	p.modHash = hex.EncodeToString(canon.Sum(nil))
	if module != selfModule {
		return pins{}, fmt.Errorf("the go.mod in the working directory is of module %q, not %s: run it as `go run -C hack/controlplane .`",
			module, selfModule)
	}
	for name, v := range map[string]string{k8sModule: p.k8s, etcdModule: p.etcd} {
		if !versionRE.MatchString(v) {
			return pins{}, fmt.Errorf("go.mod requires no usable version of %s (found %q): add one with `go get %s@<version>`", name, v, name)
		}
	}
	if p.k8sSum = findSum(sum, k8sModule, p.k8s); p.k8sSum == "" {
		return pins{}, fmt.Errorf("go.sum has no checksum of %s %s: run `go mod tidy` in hack/controlplane", k8sModule, p.k8s)
	}
	return p, nil
}

// findSum returns the checksum of the module's content in a go.sum text, or "".
func findSum(sum, module, version string) string {
	for line := range strings.Lines(sum) {
		if w := strings.Fields(line); len(w) == 3 && w[0] == module && w[1] == version {
			return w[2]
		}
	}
	return ""
}

// sourceID names the Kubernetes source by content, where an official binary
// names a git commit: the module proxy does not tell the commit.
func (p pins) sourceID() string {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.k8sSum, "h1:"))
	if err != nil {
		return ""
	}
	return "h1-" + hex.EncodeToString(raw)
}

// ldflags returns the linker flags of one binary. buildDate is RFC 3339, the
// release time of the source, so that the same pins give the same binary.
func (p pins) ldflags(t target, buildDate string) string {
	flags := []string{"-s", "-w"}
	if !strings.HasPrefix(t.pkg, k8sModule+"/") {
		return strings.Join(flags, " ")
	}
	numbers := strings.SplitN(strings.TrimPrefix(p.k8s, "v"), ".", 3)
	for _, v := range []struct{ name, value string }{
		{"gitVersion", p.k8s},
		{"gitMajor", numbers[0]},
		{"gitMinor", numbers[1]},
		{"gitCommit", p.sourceID()},
		{"gitTreeState", "archive"},
		{"buildDate", buildDate},
	} {
		for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
			flags = append(flags, fmt.Sprintf("-X=%s.%s=%s", pkg, v.name, v.value))
		}
	}
	return strings.Join(flags, " ")
}
