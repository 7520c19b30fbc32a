// Package cliconfig reads the configuration file of the command line: which standing
// sessions it declares, and what they inherit. It reads strictly, and reports everything
// that is wrong with a file at once, each with its path and its place.
//
//	routing:                      # what entries inherit
//	  defaultHarness: claude
//	  harnessArgs: {claude: [--verbose]}
//	  spawnWorkdir: ~/work
//	standingSessions:
//	  enabled: true               # default false: nothing is started by itself
//	  sessions:
//	    - name: supervisor
//	      prompt: Watch the work in flight.
package cliconfig

// Config is what a configuration file says. Its zero value is that of no file.
type Config struct {
	// File is the absolute path that it was read from, "" without a file.
	File string `json:"-"`
	// NamedBy is what led to the file, for a person, such as "--config".
	NamedBy string `json:"-"`
	// Ignored are the keys of the specification that nothing acts upon yet, in the
	// order of the file.
	Ignored []Place `json:"-"`

	// Routing is what entries inherit.
	Routing Routing `json:"routing,omitzero"`
	// StandingSessions are the declared sessions.
	StandingSessions StandingSessions `json:"standingSessions,omitzero"`
}

// Routing is what an entry inherits that does not say otherwise.
type Routing struct {
	// DefaultHarness is the name of a harness. "" is that of the default SessionClass.
	DefaultHarness string `json:"defaultHarness,omitempty"`
	// HarnessArgs are the arguments of each harness, by its name. A harness that is not
	// listed gets those of its SessionClass; one with an empty list gets none.
	HarnessArgs map[string][]string `json:"harnessArgs,omitempty"`
	// SpawnWorkdir is the working directory: absolute, or below the home directory with
	// a leading "~/". "" is the workspace root of the SessionClass.
	SpawnWorkdir string `json:"spawnWorkdir,omitempty"`
	// MaxConcurrentDispatches is how many sessions of each kind are delivered to at a time.
	// Nil is 8.
	MaxConcurrentDispatches *int `json:"maxConcurrentDispatches,omitempty"`
	// WebTerminal is the web terminal of this host.
	WebTerminal WebTerminal `json:"webTerminal,omitzero"`
}

// WebTerminal says whether and how the host's terminals are shown in a browser. What is
// left out is nil or "", and its default that of the flag of the same meaning.
type WebTerminal struct {
	// Enabled serves it. Default false.
	Enabled *bool `json:"enabled,omitempty"`
	// Provider is builtin or ttyd.
	Provider string `json:"provider,omitempty"`
	// Host is the IP address that is listened on, or localhost. Default 127.0.0.1.
	Host string `json:"host,omitempty"`
	// Port is the TCP port, 0 a free one. Default 7681.
	Port *int `json:"port,omitempty"`
	// Exposed allows a host that other machines reach. Default false.
	Exposed *bool `json:"exposed,omitempty"`
	// AllowedHosts are further names under which browsers reach it.
	AllowedHosts []string `json:"allowedHosts,omitzero"`
	// Writable lets people in browsers type. Default false.
	Writable *bool `json:"writable,omitempty"`
	// IdleSeconds is after how long without a sign of the person a browser is disconnected.
	// Default 1800.
	IdleSeconds *int `json:"idleSeconds,omitempty"`
	// MaxClients is how many browsers are served at a time. Default 16.
	MaxClients *int `json:"maxClients,omitempty"`
}

// StandingSessions is the block of declared sessions.
type StandingSessions struct {
	// Enabled lets a start of everything start the entries with AutoStart. Default
	// false: that the-loop runs is no consent to start agents.
	Enabled bool `json:"enabled,omitempty"`
	// Sessions are the entries; no two have the same name.
	Sessions []Session `json:"sessions,omitempty"`
}

// Session is one declared session.
type Session struct {
	// Name of the session: ^[a-z0-9][a-z0-9-]{0,39}$, not ending with '-'.
	Name string `json:"name"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Harness is the name of the harness. "" inherits Routing.DefaultHarness.
	Harness string `json:"harness,omitempty"`
	// Class names the SessionClass, instead of Harness.
	Class string `json:"class,omitempty"`
	// HarnessArgs are arguments for the harness. Nil inherits Routing.HarnessArgs;
	// empty is none.
	HarnessArgs []string `json:"harnessArgs,omitzero"`
	// Cwd is the working directory on the host: absolute, or with a leading "~/", which
	// is expanded there. "" inherits Routing.SpawnWorkdir.
	Cwd string `json:"cwd,omitempty"`
	// Prompt is the operator's brief.
	Prompt string `json:"prompt,omitempty"`
	// PromptFile is a file on the host with the brief, read at each fresh start. It is
	// not read here.
	PromptFile string `json:"promptFile,omitempty"`
	// AutoStart says whether a start of everything starts the session. Default true.
	AutoStart bool `json:"autoStart"`
	// Slack gives the session a Slack thread of its own.
	Slack *Slack `json:"slack,omitempty"`

	// Place of the entry in the file.
	Place Place `json:"-"`
}

// Slack binds a session to a Slack thread.
type Slack struct {
	// Enabled opens a thread. Default false.
	Enabled bool `json:"enabled,omitempty"`
	// Channel of the thread. "" is that of the Slack configuration.
	Channel string `json:"channel,omitempty"`
}
