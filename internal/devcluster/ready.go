package devcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// readyPoll is the time between two looks at a server that is not ready yet.
const readyPoll = 50 * time.Millisecond

// probe asks one server whether it is ready.
type probe struct {
	client *http.Client
	urls   []string // all must answer 200
}

func newProbe(ca *authority, client keyPair, urls ...string) (*probe, error) {
	pair, err := tls.X509KeyPair(client.cert, client.key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the client certificate of the control plane: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	return &probe{urls: urls, client: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}},
		},
	}}, nil
}

// wait returns when the server is ready. It gives up when the child ends or at
// the end of ctx, and then says what the last answer was.
func (p *probe) wait(ctx context.Context, c *child) error {
	defer p.client.CloseIdleConnections()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	start := time.Now()
	last := errors.New("it was not asked yet")
	for {
		err := p.ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-c.done:
			return fmt.Errorf("%w: %w", errDied, c.death())
		case <-ctx.Done():
			return fmt.Errorf("%w: %s was not ready after %s (%w): %w; the last lines of %s:\n%s", errDied, c.name,
				time.Since(start).Round(100*time.Millisecond), ctx.Err(), last, c.dirs.log(c.name), logTail(c.dirs.log(c.name)))
		case <-tick.C:
		}
	}
}

func (p *probe) ask(ctx context.Context) error {
	for _, url := range p.urls {
		if err := p.get(ctx, url); err != nil {
			return err
		}
	}
	return nil
}

func (p *probe) get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", url, resp.Status, failedChecks(string(body)))
	}
	return nil
}

// failedChecks picks the failed ones out of the text of a readiness endpoint.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			failed = append(failed, printable(check))
		}
	}
	if len(failed) == 0 {
		return printable(body)
	}
	return strings.Join(failed, "; ")
}
