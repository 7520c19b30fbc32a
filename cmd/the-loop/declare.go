package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cliconfig"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// declaredOwner owns, by server-side apply, the fields that a configuration file sets.
const declaredOwner client.FieldOwner = "the-loop-declared"

// declaredNamespace is where declared sessions are.
const declaredNamespace = "default"

// declaration makes the StandingSessions of one host what a start of everything makes
// them: the entries of the configuration file are applied, and what nothing starts by
// itself and does not run stays down. It is carried out before the agent starts.
type declaration struct {
	client client.Client
	// host that the sessions are for: working directories and files are its own.
	host string
	file *cliconfig.Config
	// runs reports whether a session is live on the host. Nil when that is not known.
	runs func(s *api.StandingSession) bool
	log  logr.Logger
}

// outcome is what became of one session, for a person.
type outcome struct{ name, text string }

// carryOut returns what became of each session that the file speaks of or spoke of. An
// entry that is refused stops no other; an error means that the API did not answer.
func (d *declaration) carryOut(ctx context.Context) ([]outcome, error) {
	var list api.StandingSessionList
	if err := d.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the standing sessions: %w", err)
	}
	entries := map[string]bool{}
	var out []outcome
	for i := range d.file.StandingSessions.Sessions {
		e := &d.file.StandingSessions.Sessions[i]
		entries[e.Name] = true
		text, err := d.apply(ctx, e)
		if err != nil {
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			d.log.Error(err, "a declared session was refused; the others are not", "entry", d.declaredBy(e))
			text = "refused: " + err.Error()
		}
		out = append(out, outcome{e.Name, text})
	}
	for i := range list.Items {
		s := &list.Items[i]
		if s.Spec.HostName != d.host || s.DeletionTimestamp != nil || s.Namespace == declaredNamespace && entries[s.Name] {
			continue
		}
		text, err := d.settle(ctx, s)
		if err != nil {
			return out, fmt.Errorf("StandingSession %s: %w", client.ObjectKeyFromObject(s), err)
		}
		if text != "" {
			out = append(out, outcome{s.Name, text})
		}
	}
	return out, nil
}

// declaredBy is the value of the annotation for an entry.
func (d *declaration) declaredBy(e *cliconfig.Session) string {
	return d.file.File + "#" + e.Place.Path
}

// rereads bounds how often an object is read again that somebody wrote meanwhile.
const rereads = 5

// apply makes one session what its entry says.
func (d *declaration) apply(ctx context.Context, e *cliconfig.Session) (string, error) {
	class, args, err := d.harness(ctx, e)
	if err != nil {
		return "", err
	}
	for again := 0; ; again++ {
		text, err := d.applyOnce(ctx, e, class, args)
		if apierrors.IsConflict(err) && again < rereads {
			continue
		}
		return text, err
	}
}

func (d *declaration) applyOnce(ctx context.Context, e *cliconfig.Session, class string, args []string) (string, error) {
	was := &api.StandingSession{}
	err := d.client.Get(ctx, client.ObjectKey{Namespace: declaredNamespace, Name: e.Name}, was)
	switch {
	case apierrors.IsNotFound(err):
		was = nil
	case err != nil:
		return "", err
	default:
		if err := d.mayDeclare(was); err != nil {
			return "", err
		}
	}
	state, text := d.wantedState(e, was)
	u := d.object(e, class, args, state)
	if was != nil {
		// What is said of the state below holds for what was read, and nothing newer.
		u.SetResourceVersion(was.ResourceVersion)
	}
	return text, d.write(ctx, u)
}

// mayDeclare refuses an object that is somebody else's: a name is one session, and
// adopting another's would take over a running agent.
func (d *declaration) mayDeclare(s *api.StandingSession) error {
	key := client.ObjectKeyFromObject(s)
	declared, by := s.Labels[api.OriginLabel] == api.OriginDeclared, s.Annotations[api.DeclaredByAnnotation]
	switch {
	case s.DeletionTimestamp != nil:
		return fmt.Errorf("StandingSession %s is being deleted: start the-loop again once it is gone", key)
	case !declared && by == "":
		return fmt.Errorf("StandingSession %s exists and was created by hand, not declared: give the entry another name, or delete the object (kubectl delete standing %s -n %s) and start the-loop again",
			key, s.Name, s.Namespace)
	case s.Spec.HostName != "" && s.Spec.HostName != d.host:
		return fmt.Errorf("StandingSession %s runs on host %s, declared by %s, and this is host %s: give the entry another name, or delete the object there",
			key, s.Spec.HostName, by, d.host)
	}
	return nil
}

// starts reports whether a start of everything starts the entry.
func (d *declaration) starts(e *cliconfig.Session) bool {
	return d.file.StandingSessions.Enabled && e.AutoStart
}

// wantedState is the state of a declared session, and why, for a person. was is nil when
// it does not exist.
func (d *declaration) wantedState(e *cliconfig.Session, was *api.StandingSession) (api.SessionState, string) {
	if d.starts(e) {
		if was != nil && was.Spec.State == api.SessionStateRunning && d.runs != nil && d.runs(was) {
			return was.Spec.State, "runs"
		}
		return api.SessionStateRunning, "is started"
	}
	why := "autoStart is false"
	if !d.file.StandingSessions.Enabled {
		why = "standingSessions.enabled is not true"
	}
	if was == nil || was.Spec.State != api.SessionStateRunning || d.down(was) {
		return api.SessionStateStopped, "is not started: " + why
	}
	return was.Spec.State, "should run, and is left as it is: " + why + ", which stops nothing"
}

// down reports whether a session that should run is down since its host's agent saw it:
// it does not run, and nobody changed it since. Silence of the terminal server is not
// down.
func (d *declaration) down(s *api.StandingSession) bool {
	seen := seenGeneration(s)
	return d.runs != nil && !d.runs(s) && seen != 0 && seen == s.Generation
}

// seenGeneration is the generation of the session that its agent looked at last, 0
// without.
func seenGeneration(s *api.StandingSession) int64 {
	for _, c := range s.Status.Conditions {
		if c.Type == api.ConditionSessionRunning {
			return c.ObservedGeneration
		}
	}
	return 0
}

// object is what the entry declares. A field that the file does not set is not in it.
func (d *declaration) object(e *cliconfig.Session, class string, args []string, state api.SessionState) *unstructured.Unstructured {
	spec := map[string]any{
		"hostName":  d.host,
		"state":     string(state),
		"autoStart": d.starts(e),
	}
	cwd := e.Cwd
	if cwd == "" {
		cwd = d.file.Routing.SpawnWorkdir
	}
	for key, text := range map[string]string{
		"className": class, "description": e.Description, "cwd": cwd, "prompt": e.Prompt, "promptFile": e.PromptFile,
	} {
		if text != "" {
			spec[key] = text
		}
	}
	if args != nil {
		list := make([]any, len(args))
		for i, a := range args {
			list[i] = a
		}
		spec["harnessArgs"] = list
	}
	if e.Slack != nil {
		slack := map[string]any{"enabled": e.Slack.Enabled}
		if e.Slack.Channel != "" {
			slack["channel"] = e.Slack.Channel
		}
		spec["slack"] = slack
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(api.GroupVersion.WithKind(api.KindStandingSession))
	u.SetNamespace(declaredNamespace)
	u.SetName(e.Name)
	u.SetLabels(map[string]string{api.OriginLabel: api.OriginDeclared})
	u.SetAnnotations(map[string]string{api.DeclaredByAnnotation: d.declaredBy(e)})
	return u
}

// write applies the object. Where somebody else set one of its fields to another value,
// the file wins, and the log says whose change went.
func (d *declaration) write(ctx context.Context, u *unstructured.Unstructured) error {
	err := d.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), declaredOwner)
	overridden := overridden(err)
	if len(overridden) == 0 {
		return err
	}
	if err := d.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), declaredOwner, client.ForceOwnership); err != nil {
		return err
	}
	for _, c := range overridden {
		if strings.Contains(c.Message, `"`+string(fieldOwner)+`"`) {
			continue
		}
		d.log.Info("a declared session had been changed; the file wins", "session", u.GetName(), "field", strings.TrimPrefix(c.Field, "."), "why", c.Message)
	}
	return nil
}

// overridden are the fields that others set to another value, none for an error of
// another kind.
func overridden(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var out []metav1.StatusCause
	for _, c := range status.Status().Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			out = append(out, c)
		}
	}
	return out
}

// settle is about a session of the host that the file does not declare. One that was
// declared once is kept, and never started by itself again. One that nothing starts by
// itself stays down when it is.
func (d *declaration) settle(ctx context.Context, s *api.StandingSession) (string, error) {
	before, text := s.DeepCopy(), ""
	if s.Labels[api.OriginLabel] == api.OriginDeclared {
		s.Labels[api.OriginLabel] = api.OriginCreated
		s.Spec.AutoStart = new(false)
		text = "is no longer declared, and kept: kubectl delete standing " + s.Name + " removes it"
	}
	auto := s.Spec.AutoStart == nil || *s.Spec.AutoStart
	if !auto && s.Spec.State == api.SessionStateRunning && d.down(before) {
		s.Spec.State = api.SessionStateStopped
		d.log.Info("not started: spec.autoStart is false", "session", client.ObjectKeyFromObject(s).String())
	}
	if text == "" && s.Spec.State == before.Spec.State {
		return "", nil
	}
	// Somebody who changes it at this moment knows better.
	err := d.client.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	return text, err
}

// declare carries out what the configuration file declares, and tells a person.
func (o *upOptions) declare(ctx context.Context, c client.Client, log logr.Logger, out io.Writer) error {
	d := &declaration{client: c, host: o.agent.HostName, file: o.file, runs: o.running(ctx, log), log: log}
	outcomes, err := d.carryOut(ctx)
	d.tell(out, outcomes)
	return err
}

// running looks once at what runs on the terminal server. It is nil when the server did
// not answer: silence is not absence.
func (o *upOptions) running(ctx context.Context, log logr.Logger) func(*api.StandingSession) bool {
	server, err := tmux.New(tmux.Config{Binary: o.agent.TmuxBinary, Socket: o.agent.TmuxSocket})
	if err == nil {
		var snap tmux.Snapshot
		if snap, err = server.Snapshot(ctx); err == nil {
			return func(s *api.StandingSession) bool {
				return slices.ContainsFunc(snap.ByUID(string(s.UID)), tmux.Session.Live)
			}
		}
	}
	log.Info("the terminal server did not say what runs, so no session without autoStart is held down", "why", err.Error())
	return nil
}

// tell prints what became of the sessions.
func (d *declaration) tell(out io.Writer, outcomes []outcome) {
	if len(outcomes) == 0 {
		return
	}
	by := d.file.File
	if by == "" {
		by = "no file"
	}
	fmt.Fprintf(out, "Standing sessions, declared by %s:\n", by)
	for _, o := range outcomes {
		fmt.Fprintf(out, "  %s %s\n", o.name, o.text)
	}
}
