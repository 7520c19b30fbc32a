package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// finding is what the doctor found out about one thing.
type finding struct {
	Name string `json:"name"`
	// Problem says what is wrong, "" when nothing is.
	Problem string `json:"problem,omitempty"`
	// Warning: it works, and should be changed.
	Warning bool `json:"warning,omitempty"`
	// Fix is what to do about it.
	Fix string `json:"fix,omitempty"`
	// Detail is what was found when nothing is wrong.
	Detail string `json:"detail,omitempty"`
}

func (c *cli) doctorCommand() *cobra.Command {
	verbose := false
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what keeps the-loop from working, here and in the cluster",
		Long: `Look for what keeps the-loop from working: what must be installed on this machine, the
terminal server's socket, the cluster, its kinds, your rights in it, clocks, hosts and
versions. It says nothing when all is well; --verbose says what was looked at. The exit
code is 1 when there is a problem; warnings are none.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.checkFlags(); err != nil {
				return err
			}
			found := c.examine(cmd.Context())
			bad := slices.ContainsFunc(found, func(f finding) bool { return f.Problem != "" && !f.Warning })
			if !verbose && c.output == "" {
				found = slices.DeleteFunc(found, func(f finding) bool { return f.Problem == "" })
			}
			if done, err := c.encode(found); !done {
				c.printFindings(found)
			} else if err != nil {
				return err
			}
			if bad {
				return &quietError{exitError{code: exitFailed, error: errors.New("there is a problem")}}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "say what was looked at, too")
	c.outputFlag(cmd.Flags(), "json", "yaml")
	return c.clusterFlags(cmd)
}

func (c *cli) printFindings(found []finding) {
	for _, f := range found {
		switch f.Problem {
		case "":
			fmt.Fprintf(c.Out, "ok       %s: %s\n", f.Name, wrapped(dash(f.Detail), tableWidth-11-len(f.Name), "         "))
		default:
			word := "PROBLEM "
			if f.Warning {
				word = "warning "
			}
			fmt.Fprintf(c.ErrOut, "%s %s: %s\n", word, f.Name, wrapped(f.Problem, tableWidth-11-len(f.Name), "         "))
			if f.Fix != "" {
				fmt.Fprintf(c.ErrOut, "         fix: %s\n", f.Fix)
			}
		}
	}
}

// examine looks at everything. What needs the cluster is left out when there is none.
func (c *cli) examine(ctx context.Context) []finding {
	found := append(checkTmux(), checkGit()...)
	k, err := c.core()
	if err != nil {
		return append(found, finding{Name: "cluster", Problem: err.Error()})
	}
	up, answered := checkServer(ctx, c.made.config)
	found = append(found, up...)
	if !answered {
		return found
	}
	kinds, served := checkKinds(c.made.config)
	found = append(found, kinds...)
	if !served {
		return found
	}
	found = append(found, checkRights(ctx, k)...)
	return append(found, checkHosts(ctx, k)...)
}

// checkTmux is about the tmux of this machine, which attach needs, and an agent.
func checkTmux() []finding {
	socket, err := tmux.DefaultSocket("the-loop")
	var server *tmux.Server
	if err == nil {
		server, err = tmux.New(tmux.Config{Socket: socket})
	}
	if err != nil {
		// It says how to install it on this platform.
		return []finding{{Name: "tmux", Problem: err.Error()}}
	}
	found := []finding{{Name: "tmux", Detail: "version " + server.Version()}}
	for _, w := range server.Warnings() {
		found = append(found, finding{Name: "tmux", Problem: w, Warning: true})
	}
	return append(found, checkSocket(socket)...)
}

// checkSocket is about where the terminal server's socket is.
func checkSocket(socket string) []finding {
	f := finding{Name: "socket", Detail: socket}
	switch info, err := os.Stat(filepath.Dir(socket)); {
	case len(socket) > tmux.MaxSocketBytes:
		f.Problem, f.Fix = fmt.Sprintf("the path %s has %d bytes, and %d are the most", socket, len(socket), tmux.MaxSocketBytes), "set TMUX_TMPDIR to a shorter directory"
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		f.Problem = err.Error()
	case info.Mode().Perm()&0o077 != 0:
		f.Problem, f.Fix = fmt.Sprintf("others can reach the terminals in %s (mode %o)", filepath.Dir(socket), info.Mode().Perm()), "chmod 700 "+filepath.Dir(socket)
	}
	return []finding{f}
}

func checkGit() []finding {
	path, err := exec.LookPath("git")
	if err != nil {
		release, _ := os.ReadFile("/etc/os-release")
		return []finding{{Name: "git", Warning: true, Problem: "it is needed where sessions of work items get checkouts, and is not installed", Fix: installHint("git", runtime.GOOS, string(release))}}
	}
	return []finding{{Name: "git", Detail: path}}
}

// installHint is the command that installs a package on a platform.
func installHint(name, goos, osRelease string) string {
	if goos == "darwin" {
		return "brew install " + name
	}
	managers := map[string]string{
		"debian": "apt-get install ", "ubuntu": "apt-get install ", "fedora": "dnf install ", "rhel": "dnf install ", "centos": "dnf install ",
		"amzn": "dnf install ", "alpine": "apk add ", "arch": "pacman -S ", "suse": "zypper install ", "opensuse": "zypper install ", "nixos": "nix-env -iA nixos.",
	}
	for line := range strings.Lines(osRelease) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "ID" && key != "ID_LIKE" {
			continue
		}
		for _, id := range strings.Fields(strings.Trim(value, `"'`)) {
			if m := managers[id]; m != "" {
				return m + name
			}
		}
	}
	return "install the package " + name
}

// skew is how far the clocks of this machine and of the API server may differ.
const skew = 5 * time.Second

// checkServer asks the API server for its version and its time.
func checkServer(ctx context.Context, config *rest.Config) ([]finding, bool) {
	f := finding{Name: "cluster"}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		f.Problem = err.Error()
		return []finding{f}, false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/version", nil)
	if err != nil {
		f.Problem = err.Error()
		return []finding{f}, false
	}
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		f.Problem, f.Fix = fmt.Sprintf("it does not answer: %v", err), "start it with the-loop up, or name another with --kubeconfig"
		return []finding{f}, false
	}
	defer func() { _ = resp.Body.Close() }()
	f.Detail = config.Host + " answers"
	return []finding{f, clockFinding(resp.Header.Get("Date"), began, time.Now())}, true
}

// clockFinding compares the clocks, given when the question was put and answered.
func clockFinding(date string, asked, answered time.Time) finding {
	f := finding{Name: "clock", Detail: "as the cluster's"}
	there, err := http.ParseTime(date)
	if err != nil {
		f.Detail = "the cluster does not tell its time"
		return f
	}
	// The header has whole seconds.
	off := time.Duration(0)
	if early := asked.Add(-time.Second).Sub(there); early > 0 {
		off = early
	} else if late := there.Sub(answered); late > 0 {
		off = -late
	}
	if off.Abs() > skew {
		way := "ahead of"
		if off < 0 {
			way = "behind"
		}
		f.Problem, f.Warning = fmt.Sprintf("the clock of this machine is %s %s the cluster's: ages, expiries and certificates are wrong", off.Abs().Round(time.Second), way), true
		f.Fix = "set both by NTP: timedatectl set-ntp true"
	}
	return f
}

// ownKinds are the resources that the cluster must serve.
var ownKinds = []string{"standingsessions", "workitemsessions", "sessionmessages", "sessionclasses", "sessionhosts"}

func checkKinds(config *rest.Config) ([]finding, bool) {
	f := finding{Name: "kinds", Detail: api.GroupVersion.String() + " is served"}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		f.Problem = err.Error()
		return []finding{f}, false
	}
	served, err := d.ServerResourcesForGroupVersion(api.GroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		f.Problem = err.Error()
		return []finding{f}, false
	}
	missing := slices.Clone(ownKinds)
	if served != nil {
		for _, r := range served.APIResources {
			missing = slices.DeleteFunc(missing, func(k string) bool { return k == r.Name })
		}
	}
	if len(missing) > 0 {
		f.Problem, f.Fix = "the cluster does not serve "+strings.Join(missing, ", "), "kubectl apply -f config/crd/bases, or the-loop up"
	}
	return []finding{f}, len(missing) == 0
}

// checkRights asks what the caller may do.
func checkRights(ctx context.Context, k *core.Core) []finding {
	f := finding{Name: "rights", Detail: "you may look, speak and change"}
	var lacking []string
	for _, r := range []struct{ verb, resource string }{
		{"list", "workitemsessions"}, {"list", "standingsessions"}, {"list", "sessionhosts"}, {"create", "sessionmessages"}, {"patch", "workitemsessions"}, {"patch", "standingsessions"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: k.Namespace, Verb: r.verb, Group: api.GroupVersion.Group, Resource: r.resource},
		}}
		if err := k.Client.Create(ctx, review); err != nil {
			f.Problem = err.Error()
			return []finding{f}
		}
		if !review.Status.Allowed {
			lacking = append(lacking, r.verb+" "+r.resource)
		}
	}
	if len(lacking) > 0 {
		f.Warning, f.Problem = true, "you may not "+strings.Join(lacking, ", ")+" in namespace "+k.Namespace
		f.Fix = "have an administrator bind you to the ClusterRole edit (kubectl create rolebinding)"
	}
	return []finding{f}
}

// harnessPackages say how harnesses are installed.
var harnessPackages = map[string]string{
	"claude": "npm install -g @anthropic-ai/claude-code", "codex": "npm install -g @openai/codex",
	"gemini": "npm install -g @google/gemini-cli", "opencode": "npm install -g opencode-ai",
}

// checkHosts is about what can run sessions.
func checkHosts(ctx context.Context, k *core.Core) []finding {
	hosts, err := k.ListHosts(ctx)
	if err != nil {
		return []finding{{Name: "hosts", Problem: err.Error()}}
	}
	if len(hosts) == 0 {
		return []finding{{Name: "hosts", Problem: "there is none, so nothing can be started", Fix: "the-loop up, or start an agent on a build host"}}
	}
	classes, err := k.ListClasses(ctx)
	if err != nil {
		return []finding{{Name: "classes", Problem: err.Error()}}
	}
	var found []finding
	for _, h := range hosts {
		found = append(found, checkHost(h)...)
	}
	return append(found, checkClasses(classes, hosts)...)
}

func checkHost(h *api.SessionHost) []finding {
	f := finding{Name: "host " + h.Name, Detail: "its agent is alive"}
	for _, c := range h.Status.Conditions {
		if c.Type == api.ConditionHostReady && c.Status != metav1.ConditionTrue {
			f.Problem, f.Fix = c.Reason+": "+c.Message, "look at the agent there, and start it again"
		}
	}
	found := []finding{f}
	if v := h.Status.AgentVersion; v != "" && v != version && version != "dev" {
		found = append(found, finding{Name: f.Name, Warning: true, Problem: fmt.Sprintf("its agent is of version %s, and this program of %s", v, version), Fix: "install the same version of both"})
	}
	if h.Status.BootID != "" && h.Status.BootID == core.ThisMachine().BootID && h.Status.Tmux.Socket != "" {
		if _, err := os.Stat(h.Status.Tmux.Socket); err != nil && f.Problem == "" {
			found = append(found, finding{Name: f.Name, Warning: true, Problem: "its terminal server cannot be reached from here: " + err.Error(), Fix: "run this where the agent runs, or start the agent"})
		}
	}
	return found
}

// checkClasses is about whether what classes run is installed anywhere.
func checkClasses(classes []*api.SessionClass, hosts []*api.SessionHost) []finding {
	var found []finding
	defaults := 0
	for _, class := range classes {
		if class.Labels[api.DefaultClassLabel] == "true" {
			defaults++
		}
		name := class.Spec.Harness.Name
		if name == "custom" || class.Spec.Harness.Binary != "" {
			continue // its agent alone knows that file
		}
		installed := slices.ContainsFunc(hosts, func(h *api.SessionHost) bool {
			return slices.ContainsFunc(h.Status.Harnesses, func(x api.HostHarness) bool { return x.Name == name && x.Path != "" })
		})
		if !installed {
			found = append(found, finding{Name: "class " + class.Name, Warning: true, Problem: fmt.Sprintf("it runs %s, which no host has on its PATH", name), Fix: harnessPackages[name]})
		}
	}
	if defaults != 1 {
		found = append(found, finding{Name: "classes", Warning: true, Problem: fmt.Sprintf("%d are labelled as the default one, and sessions that name none need exactly one", defaults), Fix: "kubectl label sclass NAME " + api.DefaultClassLabel + "=true"})
	}
	return found
}
