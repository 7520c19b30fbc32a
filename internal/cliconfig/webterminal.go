package cliconfig

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// webTerminal reads the block of the web terminal. What no single key shows is checked
// where it is served.
func (r *reader) webTerminal(to *WebTerminal, path string, n *yaml.Node) {
	flag := func(to **bool) func(string, *yaml.Node) {
		return func(path string, n *yaml.Node) {
			*to = new(bool)
			r.flag(*to)(path, n)
		}
	}
	r.mapping(path, n, []field{
		{"enabled", flag(&to.Enabled)},
		{"provider", r.text(&to.Provider, isProvider)},
		{"host", r.text(&to.Host, isAddress)},
		{"port", r.number(&to.Port, 0, 65535)},
		{"exposed", flag(&to.Exposed)},
		{"allowedHosts", r.texts(&to.AllowedHosts, mostAllowedHosts, isAllowedHost)},
		{"writable", flag(&to.Writable)},
		{"idleSeconds", r.number(&to.IdleSeconds, 1, 7*24*3600)},
		{"maxClients", r.number(&to.MaxClients, 1, 1000)},
	})
}

const mostAllowedHosts = 32

// number reads a whole number.
func (r *reader) number(to **int, least, most int) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		i, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || i < least || i > most {
			r.wrongKind(path, n, fmt.Sprintf("a whole number from %d to %d", least, most))
			return
		}
		*to = &i
	}
}

func isProvider(s string) string {
	if s == "builtin" || s == "ttyd" {
		return ""
	}
	return excerpt(s) + " is no provider: choose builtin or ttyd"
}

func isAddress(s string) string {
	if a, err := netip.ParseAddr(s); s == "localhost" || err == nil && a.Zone() == "" {
		return ""
	}
	return excerpt(s) + " is no address to listen on: give an IP address such as 127.0.0.1, or localhost"
}

var allowedHostForm = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$`)

func isAllowedHost(s string) string {
	if len(s) <= 261 && allowedHostForm.MatchString(s) {
		return ""
	}
	return excerpt(s) + " is no host: give a name with or without a port, as browsers send it, such as term.example.org or build7:7681"
}
