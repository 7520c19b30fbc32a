package agent

import (
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/theloop-dev/the-loop/internal/faultpoint"
)

// lossy has the writes of an agent that is built for chaos pass the fault points: below
// the client, because the client and its cache must not know what became of a write
// whose answer is lost. Any other agent's are left alone.
func lossy(cfg *rest.Config) {
	if faultpoint.On {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return lossyWrites{next} })
	}
}

type lossyWrites struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l lossyWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	before, after := writePoints(r)
	if before == "" {
		return l.next.RoundTrip(r)
	}
	if err := faultpoint.Fail(before); err != nil {
		return nil, err
	}
	answer, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := faultpoint.Fail(after); err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// writePoints are those before and after a request, "" where it is no write that counts.
func writePoints(r *http.Request) (before, after string) {
	switch {
	case r.Method == http.MethodGet:
		return "", ""
	case strings.Contains(r.URL.Path, "/sessionmessages"):
		return faultpoint.MessageWrite, faultpoint.MessageWritten
	case strings.Contains(r.URL.Path, "sessions/"):
		return faultpoint.SessionWrite, faultpoint.SessionWritten
	}
	return "", ""
}
