package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Keys of claude's user config (.claude.json) and user settings (settings.json).
const (
	keyProjects     = "projects"
	keyTrusted      = "hasTrustDialogAccepted"
	keyOnboarded    = "hasCompletedProjectOnboarding"
	keyWelcomed     = "hasCompletedOnboarding"
	keyBypassLegacy = "bypassPermissionsModeAccepted"
	keyBypass       = "skipDangerousModePermissionPrompt"
	keyMarkets      = "extraKnownMarketplaces"
	keyPlugins      = "enabledPlugins"

	loopMarketplace = "the-loop"
	loopPlugin      = "the-loop@the-loop"
)

// marketplaceRepo is the form of PrepareOptions.MarketplaceRepo. The name of a
// repository may begin with a dot, but "." and ".." are none.
var marketplaceRepo = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+$`)

// Prepare answers claude's start dialogs in its user config: trust and, where the
// arguments ask for that mode, the disclaimer about running without permissions;
// and it enables the-loop's plugin where nothing is said about it. Trust and plugin
// are independent: what one could write is written when the other fails.
//
// Claude reads both trust keys from the exact directory on at least one path, so both
// are written there under every scope; the scope only adds the workspace root. Since
// 2.1.332 it removes hasCompletedProjectOnboarding again, and moves
// bypassPermissionsModeAccepted into the settings: a key that is missing beside its
// accepted partner is therefore no reason to write. Whether the user has been through
// claude's own onboarding (hasCompletedOnboarding) is the user's affair.
func (claude) Prepare(ctx context.Context, o PrepareOptions) (Prepared, error) {
	if !o.Trust && !o.Plugins {
		return Prepared{}, nil
	}
	f, err := claudeFilesOf(o)
	if err != nil {
		return Prepared{}, err
	}
	var done Prepared
	var errs []error
	apply := func(c *configFile, edits []configEdit) {
		applied, err := c.apply(ctx, edits)
		done.Applied = append(done.Applied, applied...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if o.Trust {
		edits, warnings, err := trustEdits(o)
		if err != nil {
			errs = append(errs, err)
		}
		done.Warnings = warnings
		accept, err := acceptsBypass(o)
		if err != nil {
			errs = append(errs, err)
		}
		if accept {
			edits = append(edits, f.legacyBypass()...)
		}
		apply(f.user, edits)
		if accept {
			apply(f.settings, []configEdit{bypassEdit})
		}
	}
	if o.Plugins {
		edits, err := pluginEdits(o.MarketplaceRepo)
		if err != nil {
			errs = append(errs, err)
		}
		apply(f.settings, edits)
	}
	return done, errors.Join(errs...)
}

// Shared implements ConfigSharer. Without its user config, or without the key that it writes
// there when a person has been through it, claude begins with its onboarding: it was reset,
// unless somebody logged out, who loses that key with the account and nothing else.
func (claude) Shared(o PrepareOptions) ([]SharedConfig, error) {
	if !o.Trust && !o.Plugins {
		return nil, nil
	}
	f, err := claudeFilesOf(o)
	if err != nil {
		return nil, err
	}
	reset := func(good, now []byte) bool {
		return claudeWelcomed(good) && !claudeWelcomed(now) && !claudeLoggedOut(good, now)
	}
	return []SharedConfig{
		{configFile: *f.user, copyDir: o.CopyDir, firstRun: reset},
		{configFile: *f.settings, copyDir: o.CopyDir},
	}, nil
}

// claudeWelcomed reports whether a person has been through the onboarding.
func claudeWelcomed(text []byte) bool {
	value, err := lookUp(text, []string{keyWelcomed})
	return err == nil && string(value) == "true"
}

// claudeLoggedOut reports whether somebody logged out: the account is gone, every project is
// still there, and that nobody has been through the onboarding is said. One that begins
// anew says nothing about it, and soon has projects again.
func claudeLoggedOut(good, now []byte) bool {
	type config struct {
		Welcomed *bool                      `json:"hasCompletedOnboarding"`
		Account  json.RawMessage            `json:"oauthAccount"`
		Projects map[string]json.RawMessage `json:"projects"`
	}
	var was, is config
	if json.Unmarshal(good, &was) != nil || json.Unmarshal(now, &is) != nil || len(was.Projects) == 0 || is.Welcomed == nil {
		return false
	}
	for dir := range was.Projects {
		if _, there := is.Projects[dir]; !there {
			return false
		}
	}
	none := func(account json.RawMessage) bool { return account == nil || string(account) == "null" }
	return !none(was.Account) && none(is.Account)
}

// bypassEdit accepts the disclaimer in the settings.
var bypassEdit = configEdit{
	path: []string{keyBypass}, value: "true", what: "accept the disclaimer of bypassPermissions",
}

// claudeFiles are the two files in which claude keeps what a user has chosen.
type claudeFiles struct{ user, settings *configFile }

// claudeFilesOf finds the files: the settings in $CLAUDE_CONFIG_DIR or ~/.claude; the
// user config is .config.json there when it exists, else .claude.json in
// $CLAUDE_CONFIG_DIR or $HOME.
func claudeFilesOf(o PrepareOptions) (claudeFiles, error) {
	if !filepath.IsAbs(o.LockDir) {
		return claudeFiles{}, fmt.Errorf("the directory for locks %q must be absolute", o.LockDir)
	}
	dir, base := strings.TrimSpace(o.env("CLAUDE_CONFIG_DIR")), o.env("HOME")
	switch {
	case dir != "" && !filepath.IsAbs(dir):
		return claudeFiles{}, fmt.Errorf("CLAUDE_CONFIG_DIR=%s is relative: set it to an absolute path", dir)
	case dir != "":
		base = dir
	case !filepath.IsAbs(base):
		return claudeFiles{}, fmt.Errorf("HOME=%s of the harness is no absolute path: its config cannot be found", base)
	default:
		dir = filepath.Join(base, ".claude")
	}
	user := filepath.Join(dir, ".config.json")
	if _, err := os.Stat(user); err != nil {
		user = filepath.Join(base, ".claude.json")
	}
	return claudeFiles{
		// Claude takes this lock for its own writes of the user config.
		user:     &configFile{path: user, lockDir: o.LockDir, peerLock: user + ".lock"},
		settings: &configFile{path: filepath.Join(dir, "settings.json"), lockDir: o.LockDir},
	}, nil
}

func (o PrepareOptions) env(key string) string {
	if o.Lookup == nil {
		return ""
	}
	return o.Lookup(key)
}

// legacyBypass accepts the disclaimer where older versions of claude look for it,
// unless the settings, to which newer ones move it, have it already.
func (f claudeFiles) legacyBypass() []configEdit {
	if f.settings.has(bypassEdit) {
		return nil
	}
	return []configEdit{{path: []string{keyBypassLegacy}, value: "true", what: bypassEdit.what}}
}

// trustEdits trust the spawn directory, and by the scope the workspace root.
func trustEdits(o PrepareOptions) (edits []configEdit, warnings []string, err error) {
	switch o.Scope {
	case "", TrustWorkspaceRoot, TrustDirectory:
	default:
		return nil, nil, fmt.Errorf("the trust scope is %q: it must be %s or %s", o.Scope, TrustWorkspaceRoot, TrustDirectory)
	}
	if !filepath.IsAbs(o.Dir) {
		return nil, nil, fmt.Errorf("the spawn directory %q must be absolute", o.Dir)
	}
	dirs := bothPaths(o.Dir)
	for _, d := range dirs {
		if !utf8.ValidString(d) {
			return nil, nil, fmt.Errorf("the directory %q is not valid UTF-8, which claude's config cannot name: rename it", d)
		}
		what := "trust " + d
		edits = append(edits,
			configEdit{path: []string{keyProjects, d, keyTrusted}, value: "true", what: what},
			configEdit{path: []string{keyProjects, d, keyOnboarded}, value: "true", what: what, companion: true})
	}
	if o.Scope == TrustDirectory || o.WorkspaceRoot == "" {
		return edits, nil, nil
	}
	roots, why := widening(o)
	if why != "" {
		warnings = append(warnings, fmt.Sprintf("the workspace root %s is not trusted, only %s: %s", o.WorkspaceRoot, dirs[len(dirs)-1], why))
	}
	for _, r := range roots {
		if !slices.Contains(dirs, r) {
			edits = append(edits, configEdit{path: []string{keyProjects, r, keyTrusted}, value: "true", what: "trust " + r})
		}
	}
	return edits, warnings, nil
}

// widening are the directories to trust besides the spawn directory, or why there are
// none. A root that holds the home directory is as broad as that.
func widening(o PrepareOptions) (roots []string, why string) {
	if !filepath.IsAbs(o.WorkspaceRoot) {
		return nil, "it is not absolute"
	}
	if !utf8.ValidString(o.WorkspaceRoot) {
		return nil, "it is not valid UTF-8"
	}
	roots = bothPaths(o.WorkspaceRoot)
	dirs := bothPaths(o.Dir)
	root, dir := roots[len(roots)-1], dirs[len(dirs)-1]
	if root == dir {
		return nil, ""
	}
	if !contains(root, dir) {
		return nil, "it does not contain the directory"
	}
	if home := o.env("HOME"); filepath.IsAbs(home) {
		for _, h := range bothPaths(home) {
			for _, r := range roots {
				if contains(r, h) {
					return nil, "it is as broad as the home directory " + home
				}
			}
		}
	}
	if slices.Contains(roots, "/") {
		return nil, "it is the whole file system"
	}
	return roots, ""
}

// bothPaths are the normalised path and, when it is another one, its realpath.
func bothPaths(path string) []string {
	path = filepath.Clean(path)
	if r, err := filepath.EvalSymlinks(path); err == nil && r != path {
		return []string{path, r}
	}
	return []string{path}
}

// contains reports whether dir is root or lies below it, by components.
func contains(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// acceptsBypass decides about the disclaimer.
func acceptsBypass(o PrepareOptions) (bool, error) {
	switch o.AcceptBypass {
	case AcceptBypassAlways:
		return true, nil
	case AcceptBypassNever:
		return false, nil
	case "", AcceptBypassAuto:
		return asksForBypass(o.Args), nil
	}
	return false, fmt.Errorf("the acceptance of the disclaimer is %q: it must be %s, %s or %s",
		o.AcceptBypass, AcceptBypassAuto, AcceptBypassAlways, AcceptBypassNever)
}

// asksForBypass reports whether claude's arguments ask to run without permissions.
func asksForBypass(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch flag, value, joined := strings.Cut(args[i], "="); {
		case args[i] == "--dangerously-skip-permissions":
			return true
		case flag == "--permission-mode" && joined:
			if value == "bypassPermissions" {
				return true
			}
		case claudeTakesValue[flag] && !joined && i+1 < len(args):
			i++
			if flag == "--permission-mode" && args[i] == "bypassPermissions" {
				return true
			}
		}
	}
	return false
}

// pluginEdits enable the-loop's plugin. What is there already stays: an operator's
// marketplace of that name, and a plugin that was switched off.
func pluginEdits(repo string) ([]configEdit, error) {
	var edits []configEdit
	if repo != "" {
		if name := repo[strings.IndexByte(repo, '/')+1:]; !marketplaceRepo.MatchString(repo) || name == "." || name == ".." {
			return nil, fmt.Errorf("the plugin's marketplace %.200q must be owner/repo", repo)
		}
		edits = append(edits, configEdit{
			path:  []string{keyMarkets, loopMarketplace},
			value: `{"source": {"source": "github", "repo": "` + repo + `"}}`,
			what:  "marketplace " + loopMarketplace + " (" + repo + ")", onlyIfAbsent: true,
		})
	}
	return append(edits, configEdit{
		path: []string{keyPlugins, loopPlugin}, value: "true", what: "plugin " + loopPlugin, onlyIfAbsent: true,
	}), nil
}
