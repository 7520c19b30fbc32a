package tmux

import (
	"slices"
	"strings"
)

// passed are the variables that a server started by us inherits: what a login shell
// needs, and nothing that could be a secret of this process or a marker of the
// harness that it was started from (T27, T28).
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "TMPDIR",
	"LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS",
	"http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NIX_SSL_CERT_FILE",
}

// never are variables that would lead to another server or make tmux believe that it
// runs inside of one.
var never = []string{"TMUX", "TMUX_PANE", "TMUX_TMPDIR"}

// filterEnv keeps the variables of environ that are named.
func filterEnv(environ, names []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, ok := strings.Cut(kv, "=")
		if ok && slices.Contains(names, name) && !slices.Contains(never, name) {
			out = append(out, kv)
		}
	}
	return out
}

// clientEnvironment is the environment of our tmux clients. Without a UTF-8 locale a
// client prints "_" for every character that is not ASCII, and for TAB (N09, T30).
func clientEnvironment(environ []string) []string {
	return append(filterEnv(environ, []string{"PATH", "HOME", "USER", "SHELL"}), "LC_ALL=C.UTF-8")
}

// serverEnvironment is the environment of the server, and so of every pane.
func serverEnvironment(environ, more []string) []string {
	env := filterEnv(environ, append(slices.Clone(passed), more...))
	// The locale that counts for characters must be a UTF-8 one, whatever a service
	// manager gave us.
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		value := lookupEnv(env, name)
		if value == "" {
			continue
		}
		upper := strings.ToUpper(value)
		if strings.Contains(upper, "UTF-8") || strings.Contains(upper, "UTF8") {
			return env
		}
		break
	}
	env = slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "LC_ALL" || name == "LC_CTYPE" || name == "LANG"
	})
	return append(env, "LANG=C.UTF-8")
}

func lookupEnv(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
