package cliconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Keys that the specification knows and nothing acts upon yet. They are listed in
// Config.Ignored, and not looked into.
var (
	laterKeys = []string{
		"version", "state", "eventLog", "integrations", "service", "selfDiagnosis", "webhooks", "polling", "channels",
		"harnesses", "models", "effort",
	}
	laterRoutingKeys = []string{
		"enabled", "registryDir", "spawnOnUnmatched", "autoExecuteLabel", "autoExecuteLabels", "control", "interaction", "graph",
		"authorizedUsers", "workspace", "tmux", "dedupCacheSize", "dispatchTimeoutSeconds",
		"promptTemplate", "spawnPromptTemplate", "harnessTrust", "harnessPlugins", "reactions",
		"announce", "runner",
	}
)

// What the API server accepts in a StandingSession.
const (
	mostArgs           = 64
	longestArg         = 4096
	longestPath        = 4096
	longestDescription = 1024
	longestPrompt      = 65536
	longestChannel     = 128
	longestHarness     = 63
	longestClass       = 63
)

var (
	nameForm       = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)
	harnessForm    = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	classForm      = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	cwdForm        = regexp.MustCompile(`^(/|~$|~/)[^\x00-\x1f\x7f]*$`)
	promptFileForm = regexp.MustCompile(`^(/|~/)[^\x00-\x1f\x7f]*$`)
)

// Parse reads the text of a configuration file. file is its name, for messages. Its error
// is an *InvalidError with everything that is wrong.
func Parse(file string, data []byte) (*Config, error) {
	root, err := document(data)
	if err != nil {
		return nil, &InvalidError{File: file, Problems: []Problem{{Message: err.Error()}}}
	}
	c := &Config{File: file}
	if root == nil {
		return c, nil
	}
	r := &reader{}
	r.mapping("", root, append([]field{
		{"standingSessions", func(path string, n *yaml.Node) { r.standingSessions(&c.StandingSessions, path, n) }},
		{"routing", func(path string, n *yaml.Node) { r.routing(&c.Routing, path, n) }},
	}, later(laterKeys)...))
	if len(r.problems) > 0 {
		inOrder(r.problems)
		return nil, &InvalidError{File: file, Problems: r.problems}
	}
	for _, key := range r.ignored {
		if key.Path != "version" {
			c.Ignored = append(c.Ignored, key)
		}
	}
	return c, nil
}

// document is the root of the only document of a file, nil when there is nothing in it.
func document(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("it is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one YAML document in it (a line ---): keep one")
	}
	if len(doc.Content) != 1 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, nil
	}
	return root, nil
}

func later(keys []string) []field {
	fields := make([]field, len(keys))
	for i, k := range keys {
		fields[i].key = k
	}
	return fields
}

func (r *reader) routing(to *Routing, path string, n *yaml.Node) {
	r.mapping(path, n, append([]field{
		{"defaultHarness", r.text(&to.DefaultHarness, isHarness)},
		{"harnessArgs", func(path string, n *yaml.Node) { r.harnessArgs(to, path, n) }},
		{"spawnWorkdir", r.text(&to.SpawnWorkdir, isCwd)},
		{"maxConcurrentDispatches", r.number(&to.MaxConcurrentDispatches, 1, 1000)},
		{"webTerminal", func(path string, n *yaml.Node) { r.webTerminal(&to.WebTerminal, path, n) }},
	}, later(laterRoutingKeys)...))
}

func (r *reader) harnessArgs(to *Routing, path string, n *yaml.Node) {
	for key, value := range r.pairs(path, n) {
		if wrong := isHarness(key.Value); wrong != "" || key.Value == "" {
			r.refuse(at(join(path, key.Value), key), "the key must be the name of a harness, such as claude")
			continue
		}
		var args []string
		r.texts(&args, mostArgs, isArg)(join(path, key.Value), value)
		if to.HarnessArgs == nil {
			to.HarnessArgs = map[string][]string{}
		}
		to.HarnessArgs[key.Value] = args
	}
}

func (r *reader) standingSessions(to *StandingSessions, path string, n *yaml.Node) {
	names := map[string]Place{}
	r.mapping(path, n, []field{
		{"enabled", r.flag(&to.Enabled)},
		{"sessions", func(path string, n *yaml.Node) {
			r.list(path, n, func(path string, n *yaml.Node) {
				s := Session{AutoStart: true, Place: at(path, n)}
				r.session(&s, names, n)
				to.Sessions = append(to.Sessions, s)
			})
		}},
	})
}

// session reads one entry. names are those of the entries before it.
func (r *reader) session(s *Session, names map[string]Place, n *yaml.Node) {
	path := s.Place.Path
	found := r.mapping(path, n, []field{
		{"name", r.text(&s.Name, isName)},
		{"description", r.text(&s.Description, atMost(longestDescription))},
		{"harness", r.text(&s.Harness, isHarness)},
		{"class", r.text(&s.Class, isClass)},
		{"harnessArgs", r.texts(&s.HarnessArgs, mostArgs, isArg)},
		{"cwd", r.text(&s.Cwd, isCwd)},
		{"prompt", r.text(&s.Prompt, isPrompt)},
		{"promptFile", r.text(&s.PromptFile, isPromptFile)},
		{"autoStart", r.flag(&s.AutoStart)},
		{"slack", func(path string, n *yaml.Node) {
			s.Slack = &Slack{}
			r.mapping(path, n, []field{
				{"enabled", r.flag(&s.Slack.Enabled)},
				{"channel", r.text(&s.Slack.Channel, atMost(longestChannel))},
			})
		}},
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	r.onlyOne(path, found, "prompt", "promptFile")
	r.onlyOne(path, found, "harness", "class")
	name, ok := found["name"]
	switch before, taken := names[s.Name]; {
	case !ok:
		r.refuse(s.Place, "name is missing: every session is addressed by one")
	case s.Name == "": // refused already
	case taken:
		r.refuse(at(path+".name", name), "%q is the name of %s already: a name is one session, so none of the block is used", s.Name, before)
	default:
		names[s.Name] = at(path+".name", name)
	}
}

// onlyOne refuses two keys that are both set.
func (r *reader) onlyOne(path string, found map[string]*yaml.Node, first, second string) {
	a, b := found[first], found[second]
	if a == nil || b == nil || a.Value == "" || b.Value == "" {
		return
	}
	r.refuse(at(path+"."+second, b), "%s is set too, at %d:%d, and there is no precedence between them: remove one of the two", first, a.Line, a.Column)
}

func isName(s string) string {
	if nameForm.MatchString(s) {
		return ""
	}
	return fmt.Sprintf("%s cannot be a name: at most 40 lower-case letters, digits and '-', neither starting nor ending with '-'", excerpt(s))
}

func isHarness(s string) string {
	if s == "" || harnessForm.MatchString(s) && len(s) <= longestHarness {
		return ""
	}
	return fmt.Sprintf("%s cannot be the name of a harness: at most %d lower-case letters, digits and '-', starting with a letter", excerpt(s), longestHarness)
}

func isClass(s string) string {
	if s == "" || classForm.MatchString(s) && len(s) <= longestClass {
		return ""
	}
	return fmt.Sprintf("%s cannot be the name of a SessionClass: at most %d lower-case letters, digits, '-' and '.', starting and ending with a letter or digit", excerpt(s), longestClass)
}

func isCwd(s string) string {
	if s == "" || cwdForm.MatchString(s) {
		return atMost(longestPath)(s)
	}
	return fmt.Sprintf("%s must be an absolute path, or start with ~/, without control characters: a relative one would depend on where the-loop is started", excerpt(s))
}

func isPromptFile(s string) string {
	if s == "" || promptFileForm.MatchString(s) {
		return atMost(longestPath)(s)
	}
	return fmt.Sprintf("%s must be an absolute path of a file, or start with ~/, without control characters: a relative one would depend on where the-loop is started", excerpt(s))
}

func isPrompt(s string) string {
	if len(s) <= longestPrompt {
		return ""
	}
	return fmt.Sprintf("it has %d bytes: at most %d are allowed, put more into a file and refer to it", len(s), longestPrompt)
}

func isArg(s string) string {
	if strings.ContainsRune(s, 0) {
		return "an argument must not contain a NUL character"
	}
	return atMost(longestArg)(s)
}

// atMost bounds a text, in characters.
func atMost(most int) check {
	return func(s string) string {
		if n := utf8.RuneCountInString(s); n > most {
			return fmt.Sprintf("it has %d characters: at most %d are allowed", n, most)
		}
		return ""
	}
}
