package webterminal

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// The providers.
const (
	// ProviderBuiltin serves one page for each session.
	ProviderBuiltin = "builtin"
	// ProviderTTYD runs a ttyd child, which shows the shared hub session.
	ProviderTTYD = "ttyd"
)

// The defaults of Options.
const (
	DefaultHost       = "127.0.0.1"
	DefaultPort       = 7681
	DefaultIdle       = 30 * time.Minute
	DefaultMaxClients = 16
)

// Options say whether and how a web terminal is served. The zero value is none.
type Options struct {
	// Enabled serves it. Off by default.
	Enabled bool
	// Provider is ProviderBuiltin ("", the default) or ProviderTTYD.
	Provider string
	// Host is the address that is listened on: an IP address, or localhost. "" is 127.0.0.1.
	Host string
	// Port is the TCP port; 0 takes a free one.
	Port int
	// Exposed allows a Host that other machines reach.
	Exposed bool
	// AllowedHosts are further names under which browsers may reach it, such as that of a
	// proxy: "term.example.org" or "build7:7681". A Host that stands for every address of the
	// machine needs at least one.
	AllowedHosts []string
	// Writable lets a person take the keys. Without it everybody watches.
	Writable bool
	// Idle is after how long without a sign of the person a browser is disconnected, at
	// least a second. 0 is 30 minutes.
	Idle time.Duration
	// MaxClients is how many browsers are served at a time, 1 to 1000. 0 is 16.
	MaxClients int
	// TTYD is the ttyd to run; "" looks on PATH.
	TTYD string
}

// Flags defines the flags of these options, with o as their defaults.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.BoolVar(&o.Enabled, "web-terminal", o.Enabled, "show the terminals of this host's sessions in a browser")
	f.StringVar(&o.Provider, "web-terminal-provider", ProviderBuiltin, "what shows them: builtin, or ttyd (the shared session the-loop-hub)")
	f.StringVar(&o.Host, "web-terminal-host", DefaultHost, "IP address that the web terminal listens on, or localhost")
	f.IntVar(&o.Port, "web-terminal-port", DefaultPort, "TCP port of the web terminal, 0 for a free one")
	f.BoolVar(&o.Exposed, "web-terminal-exposed", false, "allow a --web-terminal-host that other machines reach")
	f.StringSliceVar(&o.AllowedHosts, "web-terminal-allowed-hosts", nil, "further names under which browsers reach the web terminal, such as term.example.org")
	f.BoolVar(&o.Writable, "web-terminal-writable", false, "let a person in a browser type, one at a time")
	f.DurationVar(&o.Idle, "web-terminal-idle", DefaultIdle, "disconnect a browser after so long without a sign of the person")
	f.IntVar(&o.MaxClients, "web-terminal-max-clients", DefaultMaxClients, "how many browsers at a time (1 to 1000)")
	f.StringVar(&o.TTYD, "web-terminal-ttyd", "", "ttyd to run (default: on PATH)")
}

// Complete fills in what was left out and refuses what could not be served, each with the
// form that is allowed, whether it is enabled or not.
func (o *Options) Complete() error {
	if o.Provider == "" {
		o.Provider = ProviderBuiltin
	}
	if o.Host == "" {
		o.Host = DefaultHost
	}
	if o.Idle == 0 {
		o.Idle = DefaultIdle
	}
	if o.MaxClients == 0 {
		o.MaxClients = DefaultMaxClients
	}
	if problem := checkProvider(o.Provider); problem != "" {
		return errors.New("--web-terminal-provider " + problem)
	}
	if problem := checkPort(o.Port); problem != "" {
		return errors.New("--web-terminal-port " + problem)
	}
	if o.Idle < time.Second || o.Idle > 7*24*time.Hour {
		return fmt.Errorf("--web-terminal-idle %s is not a time from 1s to 168h", o.Idle)
	}
	if o.MaxClients < 1 || o.MaxClients > 1000 {
		return fmt.Errorf("--web-terminal-max-clients %d is not a number from 1 to 1000", o.MaxClients)
	}
	for _, h := range o.AllowedHosts {
		if problem := checkAllowedHost(h); problem != "" {
			return errors.New("--web-terminal-allowed-hosts " + problem)
		}
	}
	return o.checkHost()
}

// checkHost refuses an address that other machines reach, unless that is said (U02).
func (o *Options) checkHost() error {
	if problem := checkAddress(o.Host); problem != "" {
		return errors.New("--web-terminal-host " + problem)
	}
	if isLoopback(o.Host) {
		return nil
	}
	if !o.Exposed {
		return fmt.Errorf("--web-terminal-host %s is reached by other machines, and what is shown there goes over the network unencrypted: "+
			"keep 127.0.0.1 and come by ssh -L or a proxy with TLS, or allow it with --web-terminal-exposed (webTerminal.exposed: true)", o.Host)
	}
	if netip.MustParseAddr(o.Host).IsUnspecified() && len(o.AllowedHosts) == 0 {
		return fmt.Errorf("--web-terminal-host %s stands for every address of this machine: say under which names browsers reach it with --web-terminal-allowed-hosts, such as build7.example.org:%d", o.Host, o.Port)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// checkProvider says why a provider is none, "" for one.
func checkProvider(s string) string {
	if s == ProviderBuiltin || s == ProviderTTYD {
		return ""
	}
	return fmt.Sprintf("%q is none: choose builtin or ttyd", s)
}

// checkAddress says why an address cannot be listened on, "" when it can.
func checkAddress(s string) string {
	if a, err := netip.ParseAddr(s); s == "localhost" || err == nil && a.Zone() == "" {
		return ""
	}
	return fmt.Sprintf("%q is no address to listen on: give an IP address such as 127.0.0.1, or localhost", s)
}

// checkPort says why a number is no port, "" for one.
func checkPort(n int) string {
	if n >= 0 && n <= 65535 {
		return ""
	}
	return fmt.Sprintf("%d is no port: give a number from 1 to 65535, or 0 for a free one", n)
}

var allowedHostForm = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$`)

// checkAllowedHost says why a text is no name of a host, "" for one.
func checkAllowedHost(s string) string {
	if len(s) <= 261 && allowedHostForm.MatchString(s) {
		return ""
	}
	return fmt.Sprintf("%.80q is no host: give a name with or without a port, as browsers send it, such as term.example.org or build7:7681; wildcards and URLs are none", s)
}

// reached is the address under which the host itself reaches what it listens on.
func (o *Options) reached() string {
	switch o.Host {
	case "0.0.0.0":
		return DefaultHost
	case "::":
		return "::1"
	}
	return o.Host
}

// hosts are the values of the Host header that are answered, when this port is listened on.
func (o *Options) hosts(port int) map[string]bool {
	out := map[string]bool{}
	add := func(h string) {
		out[strings.ToLower(h)] = true
		// Browsers leave out the port of the scheme.
		if bare, p, err := net.SplitHostPort(h); err == nil && (p == "80" || p == "443") {
			if strings.Contains(bare, ":") {
				bare = "[" + bare + "]"
			}
			out[strings.ToLower(bare)] = true
		}
	}
	names := []string{o.Host}
	switch {
	case isLoopback(o.Host):
		names = []string{"127.0.0.1", "::1", "localhost", o.Host}
	case netip.MustParseAddr(o.Host).IsUnspecified():
		names = []string{"127.0.0.1", "::1", "localhost"}
	}
	for _, n := range names {
		add(net.JoinHostPort(n, strconv.Itoa(port)))
	}
	for _, h := range o.AllowedHosts {
		add(h)
	}
	return out
}
