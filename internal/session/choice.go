package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// verdictLife is how long a verdict counts, and verdictAhead how far ahead of our clock
// it may be: one from the future would count forever.
const (
	verdictLife  = 24 * time.Hour
	verdictAhead = 5 * time.Minute
)

// chosen is what becomes of a model or an effort that a session asks for. Whatever is
// doubtful leaves the harness's arguments as they are; it is never an obstacle.
type chosen struct {
	kind api.ChoiceKind
	name string
	// reason is ReasonApplied, or why it is left out, which why tells a person.
	reason, why string
	// twice is the flag by which the operator's arguments say it too, "" for none.
	twice string
}

// choiceFields are where a session asks for it and where a class declares it.
var choiceFields = map[api.ChoiceKind]struct{ asked, declared string }{
	api.ChoiceModel:  {"spec.model", "spec.models"},
	api.ChoiceEffort: {"spec.effort", "spec.efforts"},
}

// Chooses reports whether a session asks for a model or an effort.
func Chooses(obj api.HostedSession) bool {
	w := wantedOf(obj)
	return w.model != "" || w.effort != ""
}

// choose decides anew on what a session asks for: each of model and effort alone, against
// the declaration of its class and what the harness itself said. Binary and arguments of
// the launch must be known.
func (e *Engine) choose(s *Subject, l *launchSpec, w wanted) {
	spec := s.Class.Spec
	for _, c := range []chosen{{kind: api.ChoiceModel, name: w.model}, {kind: api.ChoiceEffort, name: w.effort}} {
		if c.name == "" {
			continue
		}
		declared, field := Declared(spec, c.kind), choiceFields[c.kind]
		switch {
		case !slices.Contains(declared, c.name):
			c.reason = map[api.ChoiceKind]string{api.ChoiceModel: api.ReasonModelNotDeclared, api.ChoiceEffort: api.ReasonEffortNotDeclared}[c.kind]
			c.why = fmt.Sprintf("%s of SessionClass %s does not declare it, but %s: add it there, or choose another", field.declared, s.Class.Name, orElse(strings.Join(declared, ", "), "none"))
		default:
			e.judge(s, l, &c)
		}
		if c.reason == api.ReasonApplied {
			if c.kind == api.ChoiceModel {
				l.model = c.name
			} else {
				l.effort = c.name
			}
		}
		l.choices = append(l.choices, c)
	}
}

// judge decides on a declared choice by what the adapter and the harness say of it.
func (e *Engine) judge(s *Subject, l *launchSpec, c *chosen) {
	added, err := l.flags(*c)
	if err != nil {
		c.reason, c.why = api.ReasonNotSupported, err.Error()
		return
	}
	if v := e.verdict(s, l, *c); v != nil && v.Verdict == api.VerdictRefused {
		c.reason = map[api.ChoiceKind]string{api.ChoiceModel: api.ReasonModelRefused, api.ChoiceEffort: api.ReasonEffortRefused}[c.kind]
		c.why = fmt.Sprintf("the harness refused it at %s (%s): choose another, or have it asked again with kubectl annotate --overwrite sessionhost %s %s=again-1",
			v.CheckedAt.UTC().Format(time.RFC3339), v.Message, e.HostName, api.ModelsCheckRequestedAnnotation)
		return
	}
	c.reason, c.twice = api.ReasonApplied, duplicate(l.args, added)
}

// Declared are the models or the efforts of a class.
func Declared(spec api.SessionClassSpec, kind api.ChoiceKind) []string {
	if kind == api.ChoiceModel {
		return spec.Models
	}
	return spec.Efforts
}

// verdict finds what the harness said of a choice, nil when nothing that still counts.
func (e *Engine) verdict(s *Subject, l *launchSpec, c chosen) *api.ModelVerdict {
	for i := range s.Verdicts {
		v := &s.Verdicts[i]
		if v.Class == s.Class.Name && v.Kind == c.kind && v.Name == c.name && v.Harness == l.adapter.Name() &&
			l.binary != "" && v.ArgsDigest == argsDigest(l.args) && v.RuntimeDigest == runtimeDigest(l.binary, l.env) &&
			counts(v, e.Clock.Now(), verdictLife) {
			return v
		}
	}
	return nil
}

// counts reports whether a verdict is not older than life.
func counts(v *api.ModelVerdict, now time.Time, life time.Duration) bool {
	age := now.Sub(v.CheckedAt.Time)
	return age <= life && age >= -verdictAhead
}

// argsDigest is ModelVerdict.argsDigest.
func argsDigest(args []string) string { return digest(strings.Join(args, "\x00")) }

// runtimeDigest is ModelVerdict.runtimeDigest.
func runtimeDigest(binary string, env []string) string {
	what := []string{binary}
	if real, err := filepath.EvalSymlinks(binary); err == nil {
		if info, err := os.Stat(real); err == nil {
			what = []string{real, fmt.Sprint(info.Size()), fmt.Sprint(info.ModTime().UnixNano())}
		}
	}
	return digest(strings.Join(append(what, env...), "\x00"))
}

func digest(text string) string {
	const hexDigits = 16
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hexDigits]
}

// trialID is a conversation that does not exist.
const trialID = "00000000-0000-4000-8000-000000000000"

// flags are the arguments by which the adapter would pass the choice on. The error is its
// own, when it would be started without the choice but not with it.
func (l *launchSpec) flags(c chosen) ([]string, error) {
	opts := harness.LaunchOptions{
		Binary: orElse(l.binary, "/harness"), Dir: orElse(l.dir, "/"), Args: l.args, ConversationID: trialID,
		HookCommand: []string{"/hook"}, Permissions: l.perms, Custom: l.custom, FileDir: "/",
	}
	with := opts
	if c.kind == api.ChoiceModel {
		with.Model = c.name
	} else {
		with.Effort = c.name
	}
	plain, err := l.adapter.Command(opts)
	if err != nil {
		return nil, nil //nolint:nilerr // the start itself tells why
	}
	chosen, err := l.adapter.Command(with)
	if err != nil {
		return nil, err
	}
	if len(l.custom.ResumeArgs) > 0 {
		// Only templates can differ: what a start takes, a resume must take too.
		opts.Resume, with.Resume = true, true
		if _, err := l.adapter.Command(opts); err == nil {
			if _, err := l.adapter.Command(with); err != nil {
				return nil, err
			}
		}
	}
	a, b := plain.Argv, chosen.Argv
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return b[:max(0, len(b)-len(a))], nil
}

// aliases are short flags of the harnesses, by the long one.
var aliases = map[string]string{"-m": "--model"}

// duplicate is the flag in args that says the same as the added ones, "" when none does.
func duplicate(args, added []string) string {
	if len(added) == 0 {
		return ""
	}
	last := added[len(added)-1]
	key, _, assigns := strings.Cut(last, "=")
	if assigns && len(added) > 1 && !strings.HasPrefix(last, "-") {
		// -c key=value: the flag alone says nothing.
		for _, a := range args {
			if strings.HasPrefix(strings.TrimSpace(a), key+"=") {
				return key
			}
		}
		return ""
	}
	long := func(arg string) string {
		flag, _, _ := strings.Cut(arg, "=")
		return orElse(aliases[flag], flag)
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") && long(a) == long(added[0]) {
			flag, _, _ := strings.Cut(a, "=")
			return flag
		}
	}
	return ""
}

// noteChoice sets the condition ChoiceApplied, and tells once what was left out.
func (t *turn) noteChoice() {
	switch {
	case !Chooses(t.Object):
		meta.RemoveStatusCondition(&t.status.Conditions, api.ConditionChoiceApplied)
		return
	case len(t.launch.choices) == 0:
		if t.obst != nil {
			t.set(api.ConditionChoiceApplied, metav1.ConditionUnknown, t.obst.Reason, t.obst.Message)
		}
		return
	}
	status, reason, message := applied(t.launch.choices)
	before := meta.FindStatusCondition(t.status.Conditions, api.ConditionChoiceApplied)
	if status == metav1.ConditionFalse && (before == nil || before.Reason != reason) {
		t.tell(event.SessionChoiceLeftOut, message, "reason", reason)
	}
	t.set(api.ConditionChoiceApplied, status, reason, message)
}

// applied is the condition ChoiceApplied about these choices.
func applied(choices []chosen) (status metav1.ConditionStatus, reason, message string) {
	status, reason = metav1.ConditionTrue, api.ReasonApplied
	var said []string
	for _, c := range choices {
		what := fmt.Sprintf("%s %q ", choiceFields[c.kind].asked, c.name)
		if c.reason != api.ReasonApplied {
			if status == metav1.ConditionTrue {
				status, reason = metav1.ConditionFalse, c.reason
			}
			said = append(said, what+"is left out: "+c.why)
			continue
		}
		what += "is applied"
		if c.twice != "" {
			what += fmt.Sprintf("; warning: the harness arguments have %s too, and which of the two counts is the harness's choice: take it out of them", c.twice)
		}
		said = append(said, what)
	}
	return status, reason, strings.Join(said, ". ")
}
