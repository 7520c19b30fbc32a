// Package loop is the Go SDK: typed clients for the kinds of the-loop, and the verbs of
// its command line as functions. Every verb acts through the API with the rights of the
// caller's kubeconfig; nothing that it does needs more than that.
//
// A verb that starts or ends something waits for its outcome, at most Options.Timeout,
// unless Options.NoWait is set. Its Result says what became of the session; Result.Err
// is nil when that is what was asked for. Errors are refusals and failures of the call
// itself; errors.Is tells them apart by the Err variables below.
package loop

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
)

// What the verbs take and return.
type (
	// Session is a session object of either kind.
	Session = core.Session
	// Row is one session as every surface shows it.
	Row = core.Row
	// Result is what became of one session by a verb.
	Result = core.Result
	// Outcome is that in one word.
	Outcome = core.Outcome
	// Saying is a text for a session.
	Saying = core.Saying
	// Registration is a conversation that a person started by hand.
	Registration = core.Registration
	// Explanation is the chain of gates of a session or a message.
	Explanation = core.Explanation
	// Gate is one of them.
	Gate = core.Gate
	// Health is the state of everything.
	Health = core.Health
	// ListOptions choose which sessions are listed.
	ListOptions = core.ListOptions
	// MessageOptions choose which messages are listed.
	MessageOptions = core.MessageOptions
	// Error is a refusal or a failure for a person: what, and what to do about it.
	Error = core.Error
)

// What an error is about, for errors.Is.
var (
	ErrInvalid     = core.ErrInvalid
	ErrExists      = core.ErrExists
	ErrDeclared    = core.ErrDeclared
	ErrNotFound    = core.ErrNotFound
	ErrNotRunning  = core.ErrNotRunning
	ErrTooLate     = core.ErrTooLate
	ErrElsewhere   = core.ErrElsewhere
	ErrUnconfirmed = core.ErrUnconfirmed
	ErrFailed      = core.ErrFailed
)

// Options say how a Client works.
type Options struct {
	// Namespace of the sessions. "" is "default", and for a kubeconfig that of its context.
	Namespace string
	// Actor is who speaks: source.actor of messages.
	Actor string
	// Timeout bounds how long an outcome is awaited. 0 is a minute.
	Timeout time.Duration
	// NoWait returns once what was asked for is stored.
	NoWait bool
	// DryRun has the API server check everything and store nothing.
	DryRun bool
	// Progress is told what is waited for, from any goroutine. Nil for nobody.
	Progress func(what string)
}

// Client works with the sessions of one namespace. Its methods may be called from
// several goroutines at once.
type Client struct{ core *core.Core }

// New makes a Client of a cluster.
func New(config *rest.Config, o Options) (*Client, error) {
	scheme, err := core.Scheme()
	if err != nil {
		return nil, err
	}
	objects, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &Client{&core.Core{
		Client: objects, Namespace: o.Namespace, Actor: o.Actor, Timeout: o.Timeout, NoWait: o.NoWait, DryRun: o.DryRun, Progress: o.Progress,
	}}, nil
}

// FromKubeconfig makes a Client as kubectl would: path "" is $KUBECONFIG or the file in
// the home directory, context "" the current one.
func FromKubeconfig(path, context string, o Options) (*Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, err
	}
	if o.Namespace == "" {
		if o.Namespace, _, err = loader.Namespace(); err != nil {
			return nil, err
		}
	}
	return New(config, o)
}

// Objects reads, writes and watches the objects themselves, typed.
func (c *Client) Objects() client.WithWatch { return c.core.Client }

// Standing are the verbs of standing sessions.
func (c *Client) Standing() Standing { return Standing{c.core} }

// Sessions are the verbs of the sessions of work items.
func (c *Client) Sessions() Sessions { return Sessions{c.core} }

// Messages are the verbs of messages.
func (c *Client) Messages() Messages { return Messages{c.core} }

// Status says whether what should run runs, in the namespace or in all of them.
func (c *Client) Status(ctx context.Context, allNamespaces bool) (Health, error) {
	return c.core.Status(ctx, allNamespaces)
}

// Explain says what a session waits for.
func (c *Client) Explain(ctx context.Context, s Session) (Explanation, error) {
	return c.core.ExplainSession(ctx, s)
}

// RowOf is a session's row.
func RowOf(s Session) Row { return core.RowOf(s) }

// Standing are the verbs of standing sessions, which are named by name.
type Standing struct{ core *core.Core }

// List lists them, by namespace and name.
func (s Standing) List(ctx context.Context, o ListOptions) ([]*api.StandingSession, error) {
	return s.core.ListStanding(ctx, o)
}

// Get finds one; ErrNotFound when there is none.
func (s Standing) Get(ctx context.Context, name string) (*api.StandingSession, error) {
	return s.core.Standing(ctx, name)
}

// Create creates one and starts it. When that fails it is deleted again. ErrExists when
// the name is taken.
func (s Standing) Create(ctx context.Context, name string, spec api.StandingSessionSpec) (Result, error) {
	return s.core.CreateStanding(ctx, name, spec)
}

// Delete stops one and forgets it. ErrDeclared when a configuration file declares it; when
// it cannot be stopped it is kept.
func (s Standing) Delete(ctx context.Context, name string) (Result, error) {
	return s.core.DeleteStanding(ctx, name)
}

// Start makes one run; what runs already is left as it is.
func (s Standing) Start(ctx context.Context, name string) (Result, error) {
	return s.do(ctx, name, s.core.Start)
}

// Stop ends the harness of one and keeps its conversation.
func (s Standing) Stop(ctx context.Context, name string) (Result, error) {
	return s.do(ctx, name, s.core.Stop)
}

// Restart ends the harness of one and starts it again, with its conversation.
func (s Standing) Restart(ctx context.Context, name string) (Result, error) {
	return s.do(ctx, name, s.core.Restart)
}

// SetDelivery pauses one (Drop), holds its messages (Hold) or resumes it (Deliver).
func (s Standing) SetDelivery(ctx context.Context, name string, policy api.DeliveryPolicy) (Result, error) {
	return s.do(ctx, name, func(ctx context.Context, o Session) (Result, error) { return s.core.SetDelivery(ctx, o, policy) })
}

// Say stores a message for one that runs; ErrNotRunning when it does not. Messages.Await
// tells what became of it.
func (s Standing) Say(ctx context.Context, name string, saying Saying) (*api.SessionMessage, error) {
	o, err := s.core.Standing(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.core.Say(ctx, o, saying)
}

func (s Standing) do(ctx context.Context, name string, verb func(context.Context, Session) (Result, error)) (Result, error) {
	o, err := s.core.Standing(ctx, name)
	if err != nil {
		return Result{}, err
	}
	return verb(ctx, o)
}

// Sessions are the verbs of the sessions of work items. One is named by its reference
// (github:octo/repo#15) or by its object's name.
type Sessions struct{ core *core.Core }

// List lists them, by namespace and name.
func (s Sessions) List(ctx context.Context, o ListOptions) ([]*api.WorkItemSession, error) {
	return s.core.ListWorkItems(ctx, o)
}

// Get finds one; ErrNotFound when there is none.
func (s Sessions) Get(ctx context.Context, session string) (*api.WorkItemSession, error) {
	return s.core.WorkItem(ctx, session)
}

// Start makes one run, and makes one for a work item that has none. spec is what that is
// to be, and empty for one that exists.
func (s Sessions) Start(ctx context.Context, session string, spec api.WorkItemSessionSpec) (Result, error) {
	return s.core.StartWorkItem(ctx, session, spec)
}

// Stop ends the harness of one and keeps its conversation.
func (s Sessions) Stop(ctx context.Context, session string) (Result, error) {
	return s.do(ctx, session, s.core.Stop)
}

// Restart ends the harness of one and starts it again, with its conversation.
func (s Sessions) Restart(ctx context.Context, session string) (Result, error) {
	return s.do(ctx, session, s.core.Restart)
}

// SetDelivery pauses one (Drop), holds its messages (Hold) or resumes it (Deliver).
func (s Sessions) SetDelivery(ctx context.Context, session string, policy api.DeliveryPolicy) (Result, error) {
	return s.do(ctx, session, func(ctx context.Context, o Session) (Result, error) { return s.core.SetDelivery(ctx, o, policy) })
}

// Reset ends one and forgets everything of it.
func (s Sessions) Reset(ctx context.Context, session string) (Result, error) {
	o, err := s.core.WorkItem(ctx, session)
	if err != nil {
		return Result{}, err
	}
	return s.core.Reset(ctx, o)
}

// CleanUp ends everything of a work item on its hosts, its checkouts included. force also
// ends panes that a person opened in its terminal.
func (s Sessions) CleanUp(ctx context.Context, session string, force bool) (Result, error) {
	return s.core.CleanUp(ctx, session, force)
}

// UndoCleanUp has the next start bring back the checkout that was removed last.
func (s Sessions) UndoCleanUp(ctx context.Context, session string) (Result, error) {
	o, err := s.core.WorkItem(ctx, session)
	if err != nil {
		return Result{}, err
	}
	return s.core.UndoCleanUp(ctx, o)
}

// Register takes a conversation that was started by hand for a work item's session.
func (s Sessions) Register(ctx context.Context, ref string, r Registration) (Result, error) {
	return s.core.Register(ctx, ref, r)
}

// LinkPullRequest gives a pull request of a work item a session of its own.
func (s Sessions) LinkPullRequest(ctx context.Context, session, pullRequest string) (Result, error) {
	return s.core.LinkPullRequest(ctx, session, pullRequest)
}

// Say stores a message for one that runs; ErrNotRunning when it does not.
func (s Sessions) Say(ctx context.Context, session string, saying Saying) (*api.SessionMessage, error) {
	o, err := s.core.WorkItem(ctx, session)
	if err != nil {
		return nil, err
	}
	return s.core.Say(ctx, o, saying)
}

func (s Sessions) do(ctx context.Context, session string, verb func(context.Context, Session) (Result, error)) (Result, error) {
	o, err := s.core.WorkItem(ctx, session)
	if err != nil {
		return Result{}, err
	}
	return verb(ctx, o)
}

// Messages are the verbs of messages.
type Messages struct{ core *core.Core }

// List lists them, by session and by their place in its queue.
func (m Messages) List(ctx context.Context, o MessageOptions) ([]*api.SessionMessage, error) {
	return m.core.ListMessages(ctx, o)
}

// Get finds one; ErrNotFound when there is none.
func (m Messages) Get(ctx context.Context, name string) (*api.SessionMessage, error) {
	return m.core.Message(ctx, name)
}

// Await follows a message until its outcome is final. The error is nil only when the
// harness itself said that it took it; ErrUnconfirmed when it still waits after the
// timeout, ErrFailed for every other end.
func (m Messages) Await(ctx context.Context, message *api.SessionMessage) error {
	return m.core.AwaitMessage(ctx, message)
}

// Recall takes back a message that was not typed yet; ErrTooLate when it was, ErrUnconfirmed
// when its agent did not say in time.
func (m Messages) Recall(ctx context.Context, name string) error {
	_, err := m.core.Recall(ctx, name)
	return err
}

// Explain says what a message waits for, or how it ended.
func (m Messages) Explain(ctx context.Context, message *api.SessionMessage) (Explanation, error) {
	return m.core.ExplainMessage(ctx, message)
}
