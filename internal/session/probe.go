package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/oneshot"
)

const (
	// probeTimeout bounds one call. opencode was seen to take more than a minute for it, on
	// a machine that had twenty times more to do than it has processors.
	probeTimeout = 3 * time.Minute
	// verdictRenewal is the age at which a verdict is got anew: before it stops to count,
	// so that no session is started otherwise for the minute in between.
	verdictRenewal = verdictLife - time.Hour
	// unknownRenewal is when a harness that could not be asked is asked again.
	unknownRenewal = time.Hour
	// maxVerdicts and maxVerdictText are the bounds of status.models and of a message in
	// it, in bytes.
	maxVerdicts    = 512
	maxVerdictText = 256
)

// Probe is one question to a harness of the host: whether it takes one model or one
// effort that a class declares.
type Probe struct {
	// Unasked is the verdict before the question: unknown, with everything that a verdict
	// depends on.
	Unasked api.ModelVerdict

	class *api.SessionClass
	opts  harness.LaunchOptions
	ask   harness.OneShot
	env   []string
	// problem is why it cannot be asked.
	problem string
}

// Probes are the questions about what a class declares, each model and each effort alone.
// There is none about a harness that cannot be asked, or about what it could not be
// given.
func (e *Engine) Probes(class *api.SessionClass) (out []Probe) {
	h := class.Spec.Harness
	adapter, err := harness.Get(h.Name)
	if err != nil {
		return nil
	}
	ask, ok := adapter.(harness.OneShot)
	if !ok {
		return nil
	}
	binary, missing := e.findBinary(h.Binary, adapter.Binary())
	l := launchSpec{binary: binary}
	for _, v := range h.Env {
		l.env = append(l.env, v.Name+"="+v.Value)
	}
	for _, kind := range []api.ChoiceKind{api.ChoiceModel, api.ChoiceEffort} {
		for _, name := range Declared(class.Spec, kind) {
			p := Probe{class: class, ask: ask, env: l.env, opts: harness.LaunchOptions{Binary: orElse(binary, "/harness"), Dir: e.probeDir(), Args: h.Args}}
			if kind == api.ChoiceModel {
				p.opts.Model = name
			} else {
				p.opts.Effort = name
			}
			if _, err := ask.OneShot(p.opts); err != nil {
				continue
			}
			if missing != nil {
				p.problem = missing.Error()
			}
			p.Unasked = api.ModelVerdict{
				Class: class.Name, Kind: kind, Name: name, Harness: h.Name,
				ArgsDigest: argsDigest(h.Args), RuntimeDigest: runtimeDigest(binary, l.env), Verdict: api.VerdictUnknown,
			}
			out = append(out, p)
		}
	}
	return out
}

// probeDir is where harnesses are asked: always the same, because some remember each
// directory that they have seen.
func (e *Engine) probeDir() string { return filepath.Join(e.Dir, "probe") }

// Ask asks a harness, which takes up to three minutes, and must not be done twice at a time.
// What keeps it from answering makes the verdict Unknown. The error is that of ctx.
func (e *Engine) Ask(ctx context.Context, p Probe) (api.ModelVerdict, error) {
	v := p.Unasked
	verdict, message := harness.VerdictUnknown, p.problem
	if p.problem == "" {
		var err error
		if verdict, message, err = e.call(ctx, p); err != nil {
			message = err.Error()
		}
	}
	v.Verdict, v.Message = api.Verdict(verdict), oneLine(message)
	v.CheckedAt = metav1.NewTime(e.Clock.Now().Truncate(time.Second))
	return v, ctx.Err()
}

func (e *Engine) call(ctx context.Context, p Probe) (harness.Verdict, string, error) {
	cmd, err := p.ask.OneShot(p.opts)
	if err != nil {
		return harness.VerdictUnknown, "", err
	}
	dir, uid := e.probeDir(), "probe-"+uuid.NewString()
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return harness.VerdictUnknown, "", fmt.Errorf("no directory to ask it in: %w", err)
	}
	r := oneshot.Run(ctx, oneshot.Call{
		Argv: cmd.Argv, Dir: dir, Timeout: probeTimeout,
		Env: slices.Concat(e.Environ, []string{"PWD=" + dir}, p.env, cmd.Env, []string{"LOOP_UID=" + uid}),
	})
	// What left its process group is found by its environment.
	_, err = e.Sweep(context.WithoutCancel(ctx), uid)
	err = errors.Join(err, os.RemoveAll(dir))
	if err != nil {
		e.HostLog.Info("a harness that was asked about a model left something behind", "reason", err.Error())
	}
	if r.Problem != "" {
		return harness.VerdictUnknown, r.Problem, nil
	}
	verdict, message := p.ask.Verdict(p.opts, harness.Answer{Exit: r.Exit, Stdout: r.Stdout, Stderr: r.Stderr})
	return verdict, message, nil
}

// oneLine makes a message of a harness fit for a status.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if text = strings.TrimSpace(text); len(text) <= maxVerdictText {
		return text
	}
	text = text[:maxVerdictText-len("...")]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "..."
}

// Verdicts is what is known of models and efforts on a host, and what is to be asked.
type Verdicts struct {
	// Known is status.models of the host.
	Known []api.ModelVerdict
	// Wanted are all questions about the classes that are in use.
	Wanted []Probe
	// Anew is the time from which on everything is asked again, zero for not at all.
	Anew time.Time
	// Tried is when each was last asked by this process.
	Tried map[VerdictKey]time.Time
	// Again are those for which a start waits, first of all, each with the time that its
	// answer must not be older than.
	Again map[VerdictKey]time.Time
}

// VerdictKey is the key of a verdict in status.models.
type VerdictKey struct {
	Class string
	Kind  api.ChoiceKind
	Name  string
}

// KeyOf is the key of a verdict.
func KeyOf(v api.ModelVerdict) VerdictKey { return VerdictKey{v.Class, v.Kind, v.Name} }

// Next is the first question that is due, nil for none; wait is then when the next one
// will be, 0 for never.
func (v Verdicts) Next(now time.Time) (due *Probe, wait time.Duration) {
	for i := range v.Wanted {
		key := KeyOf(v.Wanted[i].Unasked)
		if since, waits := v.Again[key]; waits && v.Tried[key].Before(since) {
			return &v.Wanted[i], 0
		}
	}
	for i := range v.Wanted {
		p := &v.Wanted[i]
		left := v.dueIn(p, now)
		if left <= 0 {
			return p, 0
		}
		wait = Soonest(wait, left)
	}
	for _, k := range v.Known {
		if left := verdictLife - now.Sub(k.CheckedAt.Time); left > 0 {
			wait = Soonest(wait, left) // it is dropped then
		}
	}
	return nil, wait
}

// dueIn is in what time a question is due.
func (v Verdicts) dueIn(p *Probe, now time.Time) time.Duration {
	tried, was := v.Tried[KeyOf(p.Unasked)]
	if was && tried.Before(v.Anew) || !was && !v.Anew.IsZero() {
		return 0
	}
	known := v.known(KeyOf(p.Unasked))
	if known == nil && was {
		// The answer could not be kept: there are too many, or the write failed. To ask at
		// once would be to ask without end.
		return unknownRenewal - now.Sub(tried)
	}
	if known == nil || !sameRuntime(*known, p.Unasked) {
		return 0
	}
	renewal := verdictRenewal
	if known.Verdict == api.VerdictUnknown {
		renewal = unknownRenewal
	}
	if !counts(known, now, renewal) {
		if was { // and the answer said nothing
			return unknownRenewal - now.Sub(tried)
		}
		return 0
	}
	return renewal - now.Sub(known.CheckedAt.Time)
}

// Verdict is what is known of a model or an effort, "" for nothing.
func (v Verdicts) Verdict(key VerdictKey) api.Verdict {
	if k := v.known(key); k != nil {
		return k.Verdict
	}
	return ""
}

func (v Verdicts) known(key VerdictKey) *api.ModelVerdict {
	for i := range v.Known {
		if KeyOf(v.Known[i]) == key {
			return &v.Known[i]
		}
	}
	return nil
}

// sameRuntime reports whether two verdicts are about the same harness, arguments,
// environment and executable.
func sameRuntime(a, b api.ModelVerdict) bool {
	return a.Harness == b.Harness && a.ArgsDigest == b.ArgsDigest && a.RuntimeDigest == b.RuntimeDigest
}

// Learn is status.models with an answer in it, sorted. An answer that says nothing does
// not take the place of one that says something and still counts: an outage must not
// bring a refused model back. What is not wanted is dropped when it counts no more.
func (v Verdicts) Learn(answer *api.ModelVerdict, now time.Time) []api.ModelVerdict {
	var out []api.ModelVerdict
	for _, k := range v.Known {
		wanted := slices.ContainsFunc(v.Wanted, func(p Probe) bool { return KeyOf(p.Unasked) == KeyOf(k) })
		switch {
		case answer != nil && KeyOf(k) == KeyOf(*answer):
			if answer.Verdict == api.VerdictUnknown && k.Verdict != api.VerdictUnknown && sameRuntime(k, *answer) && counts(&k, now, verdictLife) {
				answer = &k
			}
		case wanted || counts(&k, now, verdictLife):
			out = append(out, k)
		}
	}
	if answer != nil {
		out = append(out, *answer)
	}
	slices.SortFunc(out, func(a, b api.ModelVerdict) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), maxVerdicts)]
}
