package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// buildFlags are the flags of every go build; the cache key depends on them.
// Without cgo the binaries run on any Linux and need no C compiler, like the
// official ones. The explicit -mod and -tags outrank GOFLAGS.
const buildFlags = "CGO_ENABLED=0 -mod=readonly -tags= -trimpath -buildvcs=false"

// stopGrace is how long an interrupted go command may take to end before it is killed.
const stopGrace = 3 * time.Second

// goBuilder builds with the go command.
type goBuilder struct {
	pins      pins
	moduleDir string
	goCommand string // for tests; "" finds it

	env *goEnv // filled by the first build
}

// goEnv is what the go command says about itself and the pinned source.
type goEnv struct {
	goPath    string
	GOVERSION string
	GOPROXY   string
	GOCACHE   string
	GOFLAGS   string
	buildDate string // release time of the Kubernetes source, RFC 3339
}

func (b *goBuilder) build(ctx context.Context, t target, out string, step func(string)) error {
	if err := b.prepare(ctx, step); err != nil {
		return err
	}
	flags := strings.Fields(buildFlags)[1:]
	args := append([]string{"build", "-v"}, flags...)
	args = append(args, "-ldflags="+b.pins.ldflags(t, b.env.buildDate), "-o", out, t.pkg)
	// An interrupted go build leaves its work directory behind, so it gets one
	// that goes away with the caller's directory, now or at the next build.
	work := out + ".work"
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	_, err := b.goRun(ctx, "go build "+t.pkg, step, []string{"GOTMPDIR=" + work}, args...)
	return err
}

// prepare finds out about the go command once.
func (b *goBuilder) prepare(ctx context.Context, step func(string)) error {
	if b.env != nil {
		return nil
	}
	env := &goEnv{goPath: b.goCommand}
	if env.goPath == "" {
		path, err := exec.LookPath("go")
		if err != nil {
			return fmt.Errorf("the go command is not on PATH: install Go %s or newer from https://go.dev/dl/ and put its bin directory on PATH",
				b.pins.goVersion)
		}
		env.goPath = path
	}
	b.env = env
	err := b.query(ctx, step, env)
	if err != nil {
		b.env = nil
	}
	return err
}

func (b *goBuilder) query(ctx context.Context, step func(string), env *goEnv) error {
	step("asking go about itself")
	out, err := b.goRun(ctx, "go env", step, nil, "env", "-json", "GOVERSION", "GOPROXY", "GOCACHE", "GOFLAGS")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, env); err != nil {
		return fmt.Errorf("%s env gave no JSON (%w): is it the go command?", env.goPath, err)
	}
	if olderGo(env.GOVERSION, b.pins.goVersion) {
		return tooOld(env.goPath, env.GOVERSION, b.pins.goVersion)
	}
	step("fetching the Kubernetes source")
	out, err = b.goRun(ctx, "go mod download "+k8sModule, step, nil, "mod", "download", "-json", k8sModule)
	if err != nil {
		return err
	}
	var mod struct{ Info string }
	if err := json.Unmarshal(out, &mod); err != nil {
		return fmt.Errorf("go mod download gave no JSON: %w", err)
	}
	info, err := os.ReadFile(mod.Info)
	if err != nil {
		return fmt.Errorf("cannot read the release time of %s: %w", k8sModule, err)
	}
	var release struct{ Time time.Time }
	if err := json.Unmarshal(info, &release); err != nil {
		return fmt.Errorf("cannot read the release time of %s from %s: %w", k8sModule, mod.Info, err)
	}
	env.buildDate = release.Time.UTC().Format(time.RFC3339)
	return nil
}

// goRun runs the go command in the module and returns its standard output.
// Its standard error feeds step and, when it fails, the error. The end of ctx
// stops it and everything it started.
func (b *goBuilder) goRun(ctx context.Context, what string, step func(string), env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.env.goPath, args...)
	cmd.Dir = b.moduleDir
	cmd.Env = append(childEnv(os.Environ(), b.env.GOFLAGS), env...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	r, w := io.Pipe()
	cmd.Stderr = w
	cmd.SysProcAttr = childAttr()
	// The group, because compilers are its children.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopGrace

	tail := make(chan []string, 1)
	go func() { tail <- follow(r, step) }()
	// Where the platform ties a child to the thread that started it, that
	// thread must stay.
	runtime.LockOSThread()
	err := cmd.Run()
	runtime.UnlockOSThread()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // stragglers; usually none
	}
	_ = w.Close()
	lines := <-tail
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, b.explain(what, err, append(lines, jsonError(stdout.Bytes())...))
	}
	return stdout.Bytes(), nil
}

// jsonError returns the error that a command with -json wrote to its standard output.
func jsonError(stdout []byte) []string {
	var out struct{ Error string }
	if json.Unmarshal(stdout, &out) != nil || out.Error == "" {
		return nil
	}
	return strings.Split(strings.TrimSpace(out.Error), "\n")
}

// childEnv returns the environment of a go command. Of GOFLAGS only those stay
// that do not change what is built, since the cache key does not know the others.
func childEnv(environ []string, goflags string) []string {
	kept := []string{"-buildvcs=false"}
	for _, f := range strings.Fields(goflags) {
		if strings.HasPrefix(f, "-p=") || f == "-modcacherw" {
			kept = append(kept, f)
		}
	}
	// The last of two equal names counts.
	return append(environ[:len(environ):len(environ)],
		"CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOWORK=off",
		"GOFLAGS="+strings.Join(kept, " "))
}

// follow reads the standard error of a go command to its end: the names of
// packages and modules feed step, the last other lines are returned.
func follow(r io.Reader, step func(string)) []string {
	const keep = 12
	var tail []string
	compiled, downloaded := 0, 0
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := strings.TrimRight(in.Text(), " \t\r")
		switch {
		case line == "":
		case strings.HasPrefix(line, "go: downloading "):
			downloaded++
			step(fmt.Sprintf("downloading, %d modules so far", downloaded))
		case !strings.ContainsAny(line, " \t") && !strings.HasPrefix(line, "#"):
			compiled++
			step(fmt.Sprintf("compiling, %d packages so far", compiled))
		default:
			if tail = append(tail, line); len(tail) > keep {
				tail = tail[1:]
			}
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line beyond all bounds: never block the child
	return tail
}

// Texts of go and of the system, and what to do about them.
var (
	fullTexts    = []string{"no space left on device", "disk quota exceeded"}
	networkTexts = []string{"dial tcp", "no such host", "connection refused", "connection reset", "i/o timeout", "tls:", "x509:",
		"proxyconnect", "network is unreachable", "module lookup disabled", "unexpected EOF", "404 Not Found", "410 Gone",
		"502 Bad Gateway", "503 Service Unavailable"}
)

// explain makes an error for a person out of a failed go command.
func (b *goBuilder) explain(what string, err error, lines []string) error {
	text := strings.Join(lines, "\n")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("cannot run %s: %w: install Go %s or newer from https://go.dev/dl/", b.env.goPath, err, b.pins.goVersion)
	}
	var remedy string
	switch {
	case strings.Contains(text, "requires go >= "):
		return fmt.Errorf("%w\n%s", tooOld(b.env.goPath, "", b.pins.goVersion), indent(lines))
	case containsAny(text, fullTexts):
		remedy = fmt.Sprintf("a disk is full: a build needs about 3 GB in Go's build cache (%s; set GOCACHE to move it) "+
			"and 1 GB in the cache of the-loop (set %s to move it)", b.env.GOCACHE, cacheVar)
	case containsAny(text, networkTexts):
		remedy = fmt.Sprintf("Go could not fetch modules through GOPROXY=%s: check the network, or point Go at a proxy that is reachable "+
			"from here with `go env -w GOPROXY=https://...`", b.env.GOPROXY)
	case strings.Contains(text, "signal: killed"):
		remedy = "a compiler was killed, most often for want of memory: 4 GB are enough, or use fewer at once with GOFLAGS=-p=1"
	default:
		remedy = "the lines above are Go's own; run it again with the same command once they are dealt with"
	}
	return fmt.Errorf("%s failed (%w):\n%s\n%s", what, err, indent(lines), remedy)
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

func indent(lines []string) string {
	if len(lines) == 0 {
		return "    (it said nothing)"
	}
	return "    " + strings.Join(lines, "\n    ")
}

func tooOld(path, have, want string) error {
	if have == "" {
		have = "an older Go"
	}
	return fmt.Errorf("%s is %s, but the control plane needs Go %s or newer: install it from https://go.dev/dl/, "+
		"or let Go fetch it with `go env -w GOTOOLCHAIN=auto`", path, have, want)
}

// olderGo says whether have ("go1.26.1") is older than want ("1.26.0"). A
// version it cannot read ("devel ...") is taken to be new enough.
func olderGo(have, want string) bool {
	h, w := goNumbers(strings.TrimPrefix(have, "go")), goNumbers(want)
	if h == nil || w == nil {
		return false
	}
	for i := range w {
		if h[i] != w[i] {
			return h[i] < w[i]
		}
	}
	return false
}

// goNumbers splits "1.26.1" or "1.27rc1" into three numbers; nil if it cannot.
func goNumbers(v string) []int {
	out := make([]int, 3)
	for i, part := range strings.SplitN(v, ".", 3) {
		if n, err := fmt.Sscanf(part, "%d", &out[i]); n != 1 || err != nil {
			return nil
		}
	}
	return out
}
