package devcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// startLimit bounds Start and StartAPIServer when ctx has no deadline. A start
// takes some five seconds; a loaded machine may need many times that.
const startLimit = 2 * time.Minute

// Options say which control plane to start and where.
type Options struct {
	// Dir is the absolute path of the control plane's state. It is made when
	// absent; its parent must allow that. Required.
	Dir string
	// BinDir is the directory with kube-apiserver and etcd. Required.
	BinDir string
	// Log is told about progress, one line a call without a newline. Optional.
	// It may be called from several goroutines.
	Log func(format string, args ...any)
	// EtcdPort and APIServerPort are TCP ports on 127.0.0.1. 0 means the port
	// that an earlier Start on Dir used, so that its kubeconfigs keep working,
	// and otherwise a free one below the kernel's range for outgoing
	// connections. A port of another process is refused, never moved.
	EtcdPort, APIServerPort int
	// ExtraAPIServerArgs are appended to the arguments of kube-apiserver, where
	// they outrank those that this package sets.
	ExtraAPIServerArgs []string
	// RequestLog is the absolute path of a file to which the API server appends
	// each answered request (an audit log of level Metadata, mode 0600), so that
	// a test can count requests by user; see ReadRequestLog. "" means none.
	RequestLog string
	// NoFsync lets etcd skip fsync. Writes get faster on a slow disk and a crash
	// of the machine may lose all data: for tests whose Dir is thrown away.
	NoFsync bool
}

// validate checks what needs no lock and leaves nothing behind.
func (o Options) validate() error {
	for _, p := range []struct{ name, path string }{{"Dir", o.Dir}, {"BinDir", o.BinDir}} {
		if !filepath.IsAbs(p.path) {
			return fmt.Errorf("the control plane's %s %q is not an absolute path: give the full path", p.name, p.path)
		}
	}
	if o.RequestLog != "" {
		if !filepath.IsAbs(o.RequestLog) {
			return fmt.Errorf("the control plane's RequestLog %q is not an absolute path: give the full path", o.RequestLog)
		}
		if _, err := os.Stat(filepath.Dir(o.RequestLog)); err != nil {
			return fmt.Errorf("cannot write the control plane's RequestLog: %w: make its directory first", err)
		}
	}
	for _, p := range []int{o.EtcdPort, o.APIServerPort} {
		if p < 0 || p > 65535 {
			return fmt.Errorf("%d is not a TCP port: use 1 to 65535, or 0 to have one chosen", p)
		}
	}
	if o.EtcdPort != 0 && o.EtcdPort == o.APIServerPort {
		return fmt.Errorf("etcd and the API server cannot share port %d: use two ports, or 0 to have them chosen", o.EtcdPort)
	}
	for _, name := range []string{etcdName, apiserverName} {
		if err := checkBinary(filepath.Join(o.BinDir, name)); err != nil {
			return err
		}
	}
	return nil
}

func checkBinary(path string) error {
	const remedy = "run `make controlplane`, which builds it, and use the directory it prints"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s of the control plane is missing from %s: %s", filepath.Base(path), filepath.Dir(path), remedy)
	case err != nil:
		return fmt.Errorf("cannot use the control plane's %s: %w: %s", filepath.Base(path), err, remedy)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not a program (mode %v): %s", path, info.Mode(), remedy)
	}
	return nil
}

// layout names the files of a state directory.
type layout string

func (d layout) lock() string              { return filepath.Join(string(d), "lock") }
func (d layout) ports() string             { return filepath.Join(string(d), "ports.json") }
func (d layout) kubeconfig() string        { return filepath.Join(string(d), "kubeconfig") }
func (d layout) pki(name string) string    { return filepath.Join(string(d), "pki", name) }
func (d layout) etcd() string              { return filepath.Join(string(d), "etcd") }
func (d layout) log(name string) string    { return filepath.Join(string(d), "logs", name+".log") }
func (d layout) run(name string) string    { return filepath.Join(string(d), "run", name) }
func (d layout) auditPolicy() string       { return d.run("audit-policy.yaml") }
func (d layout) record(name string) string { return d.run(name + ".json") }

// make creates the directories, readable by this user only.
func (d layout) make() error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return d.explain(err)
	}
	for _, sub := range []string{d.pki(""), d.etcd(), filepath.Dir(d.log("")), d.run("")} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return d.explain(err)
		}
		// One that a person made or copied may be open to others.
		if err := os.Chmod(sub, 0o700); err != nil {
			return d.explain(err)
		}
	}
	return nil
}

// explain says what a person can do about an error below the directory.
func (d layout) explain(err error) error {
	return fmt.Errorf("cannot use the state directory %s of the control plane: %w: "+
		"choose a directory that this user can write and that has space left", string(d), err)
}
