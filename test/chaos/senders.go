package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/test/testenv"
)

const (
	// crowd is how many senders every second session has; the others have one alone.
	crowd = 3
	// createWithin bounds one try to store a message, retryAfter the wait for the next.
	createWithin = 5 * time.Second
	retryAfter   = 200 * time.Millisecond
)

// sender sends messages to one session, one after the other: it goes on when the API
// server has the one before.
type sender struct {
	name    string
	session testenv.Session
	count   int
	every   time.Duration
	random  *rand.Rand
	client  client.Client
	sent    *sent
}

// sent is everything that was sent.
type sent struct {
	mu   sync.Mutex
	all  []Message
	from map[string]time.Time
}

func (s *sent) add(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, m)
	s.from[m.Name] = time.Now()
}

// newSenders shares the messages out among the senders of all sessions.
func newSenders(o Options, c client.Client, sessions []testenv.Session) ([]*sender, *sent) {
	var all []*sender
	everything := &sent{from: map[string]time.Time{}}
	for i, s := range sessions {
		n := 1
		if i%2 == 0 {
			n = crowd
		}
		for range n {
			name := fmt.Sprintf("s%d", len(all)+1)
			all = append(all, &sender{name: name, session: s, random: o.random(uint64(len(all) + 1)), client: c, sent: everything})
		}
	}
	for i := range o.Messages {
		all[i%len(all)].count++
	}
	for _, s := range all {
		s.every = o.Duration / time.Duration(max(1, s.count))
	}
	return all, everything
}

// send sends all of them. It gives up only with ctx.
func (s *sender) send(ctx context.Context) error {
	twin := ""
	for n := 1; n <= s.count; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(between(s.random, 0, 2*s.every)):
		}
		m := &api.SessionMessage{
			// A name says nothing of the order.
			ObjectMeta: metav1.ObjectMeta{Namespace: s.session.GetNamespace(), Name: fmt.Sprintf("c-%010x-%s-%d", s.random.Uint64()>>24, s.name, n)},
			Spec: api.SessionMessageSpec{
				SessionRef: api.SessionReference{Kind: s.session.SessionKind(), Name: s.session.GetName()},
				Source:     api.MessageSource{Type: api.SourcePerson, Actor: s.name},
			},
		}
		mark := Mark(s.name, n)
		m.Spec.Text = write(s.random, mark)
		if s.random.IntN(50) == 0 && n > 1 {
			// The very same text as the one before.
			mark, m.Spec.Text = Mark(s.name, n-1), twin
		}
		twin = m.Spec.Text
		if s.random.IntN(30) == 0 {
			m.Spec.ExpiresAfterSeconds = new(int32(2 + s.random.IntN(10)))
		}
		record := Message{
			Name: m.Name, Session: key(s.session), Sender: s.name, Number: n, Mark: mark, Text: typed(s.session, s.name, m.Spec.Text),
		}
		if err := s.create(ctx, m); err != nil {
			return fmt.Errorf("storing message %s: %w", m.Name, err)
		}
		s.sent.add(record)
	}
	return nil
}

// create stores a message, however often it takes. An answer that was lost is no harm: the
// second message of a name is refused.
func (s *sender) create(ctx context.Context, m *api.SessionMessage) error {
	for {
		err := func() error {
			try, cancel := context.WithTimeout(ctx, createWithin)
			defer cancel()
			return s.client.Create(try, m.DeepCopy())
		}()
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if apierrors.IsInvalid(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryAfter):
		}
	}
}

// write makes up a text: short and long ones, and those that would be something else than
// a text if they were typed as they are.
func write(r *rand.Rand, mark string) string {
	var body string
	switch r.IntN(8) {
	case 0:
		body = "/clear"
	case 1:
		body = "!touch /tmp/x\n# a note\n@somebody"
	case 2:
		body = "two\n\nparagraphs,\r\nand \x1b[201~\r a frame's end"
	case 3:
		body = "äöü 漢字 👩‍👧 \u202e\u200b hidden"
	case 4:
		body = strings.Repeat("a long line of a long text\n", 20+r.IntN(400))
	default:
		body = "please look at this"
	}
	end := []string{"", "\n\n", ` \`, " @src/ma"}[r.IntN(4)]
	return mark + " " + body + "\n" + mark + end
}

// typed is a text as the harness takes it.
func typed(s testenv.Session, actor, body string) string {
	body, _ = text.Sanitize(body)
	if s.SessionKind() == api.KindStandingSession {
		return text.OperatorFrame(s.GetName(), actor, body)
	}
	return text.PlainFrame(string(api.SourcePerson), actor, body)
}

// key names a session.
func key(s testenv.Session) string { return s.SessionKind() + "/" + s.GetName() }
