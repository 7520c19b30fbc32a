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
	"syscall"
)

// errUnreachable: the package registry cannot be used here.
var errUnreachable = errors.New("the real harnesses are not in the cache and npm cannot fetch them")

// npmUnreachable is what npm says when it cannot reach its registry.
var npmUnreachable = regexp.MustCompile(`\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|UNABLE_TO_GET_ISSUER_CERT_LOCALLY)\b`)

const claudePackage = "@anthropic-ai/claude-code"

// claudeBinary returns the pinned Claude Code. It is installed with npm, exactly as
// hack/harnesses/package-lock.json says, into
// ${THE_LOOP_CACHE:-~/.cache/the-loop}/harnesses, once for all who run it here.
func claudeBinary(ctx context.Context) (path string, err error) {
	pins := filepath.Join(root, "hack", "harnesses")
	lock, err := os.ReadFile(filepath.Join(pins, "package-lock.json"))
	if err != nil {
		return "", err
	}
	var tree struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(lock, &tree); err != nil {
		return "", err
	}
	version := tree.Packages["node_modules/"+claudePackage].Version
	if version == "" {
		return "", fmt.Errorf("%s is not in the lock file", claudePackage)
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
	dir := filepath.Join(parent, "claude-"+version+"-"+hex.EncodeToString(sum[:4]))
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
	return filepath.EvalSymlinks(filepath.Join(dir, "node_modules", ".bin", "claude"))
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
	// The package's install script only swaps the binary in for other installers.
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
