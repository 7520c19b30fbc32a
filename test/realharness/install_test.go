package realharness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// errUnreachable: the package registry cannot be used here.
var errUnreachable = errors.New("the real harnesses are not in the cache and npm cannot fetch them")

// npmUnreachable is what npm says when it cannot reach its registry.
var npmUnreachable = regexp.MustCompile(`\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|UNABLE_TO_GET_ISSUER_CERT_LOCALLY)\b`)

// binary installs the harness of this name as hack/harnesses/NAME/package-lock.json says,
// into ${THE_LOOP_CACHE:-~/.cache/the-loop}/harnesses, once for all who run it here, and
// returns its executable. Where npm cannot be reached the test is skipped.
func binary(ctx context.Context, name string) string {
	GinkgoHelper()
	if name == "opencode" && runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		Skip("opencode is pinned for linux/amd64 alone")
	}
	path, err := install(ctx, ground.Root(GinkgoTB()), name)
	if errors.Is(err, errUnreachable) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	return path
}

func install(ctx context.Context, root, name string) (path string, err error) {
	pins := filepath.Join(root, "hack", "harnesses", name)
	lock, err := os.ReadFile(filepath.Join(pins, "package-lock.json"))
	if err != nil {
		return "", err
	}
	version, err := pinned(pins, lock)
	if err != nil {
		return "", err
	}
	cache := os.Getenv("THE_LOOP_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(user, "the-loop")
	}
	sum := sha256.Sum256(lock)
	parent := filepath.Join(cache, "harnesses")
	dir := filepath.Join(parent, name+"-"+version+"-"+hex.EncodeToString(sum[:4]))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	f, err := os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	defer func() { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }()
	if _, err := os.Stat(dir); err != nil {
		if err := npmInstall(ctx, pins, dir); err != nil {
			return "", err
		}
	}
	executable := filepath.Join(".bin", name)
	if own, ok := executables[name]; ok {
		executable = own
	}
	return filepath.EvalSymlinks(filepath.Join(dir, "node_modules", executable))
}

// executables are those of packages that declare none to npm.
var executables = map[string]string{"opencode": "opencode-linux-x64-baseline/bin/opencode"}

// pinned is the version of the one package that is pinned in a directory.
func pinned(pins string, lock []byte) (string, error) {
	var wanted struct {
		Dependencies map[string]string
	}
	text, err := os.ReadFile(filepath.Join(pins, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &wanted)
	}
	var tree struct {
		Packages map[string]struct{ Version string }
	}
	if err == nil {
		err = json.Unmarshal(lock, &tree)
	}
	if err != nil {
		return "", err
	}
	for name, version := range wanted.Dependencies {
		if tree.Packages["node_modules/"+name].Version == version && len(wanted.Dependencies) == 1 {
			return version, nil
		}
	}
	return "", fmt.Errorf("%s does not pin one package, the same in both files", pins)
}

// npmInstall installs what the lock file in pins says into dir, whole or not at all.
func npmInstall(ctx context.Context, pins, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	tmp := dir + ".tmp" // the lock is held: nobody else is at it
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(pins, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, name), b, 0o644); err != nil {
			return err
		}
	}
	// Install scripts only swap binaries in for other installers, or build what is optional.
	cmd := exec.CommandContext(ctx, npm, "ci", "--no-audit", "--no-fund", "--no-update-notifier")
	cmd.Dir = tmp
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil && npmUnreachable.Match(out):
		return fmt.Errorf("%w: %s", errUnreachable, out)
	case err != nil:
		return fmt.Errorf("npm ci: %w: %s", err, out)
	}
	return os.Rename(tmp, dir)
}
