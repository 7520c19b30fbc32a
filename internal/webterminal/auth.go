package webterminal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// ticketLife is how long a ticket can be used, once.
	ticketLife = 2 * time.Minute
	// loginLife is how long a login lasts.
	loginLife = 12 * time.Hour
	// maxLogins bounds how many there are; the oldest ends.
	maxLogins = 256
	// ticketPrefix tells a ticket from the token.
	ticketPrefix = "t1."
	tokenBytes   = 32
)

// Dir is the web terminal's directory in that of an agent.
func Dir(agentDir string) string { return filepath.Join(agentDir, "web-terminal") }

func tokenFile(dir string) string { return filepath.Join(dir, "token") }
func urlFile(dir string) string   { return filepath.Join(dir, "url") }

// ReadToken reads the token of a web terminal's directory.
func ReadToken(dir string) (string, error) {
	file := tokenFile(dir)
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the token %s must be a plain file that nobody else can read, and is %s: chmod 600 it, or remove it for a new one", file, info.Mode())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != tokenBytes {
		return "", fmt.Errorf("the token %s is damaged: remove it, a new one is made at the next start", file)
	}
	return token, nil
}

// ReadURL reads where the web terminal of a directory listens.
func ReadURL(dir string) (string, error) {
	b, err := os.ReadFile(urlFile(dir))
	return strings.TrimSpace(string(b)), err
}

// makeToken reads the token, and makes it where there is none. It stays the same until
// somebody removes it.
func makeToken(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the web terminal's directory cannot be made: %w", err)
	}
	token, err := ReadToken(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	token = secret()
	f, err := os.OpenFile(tokenFile(dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("the web terminal's token cannot be written: %w", err)
	}
	_, err = f.WriteString(token + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("the web terminal's token cannot be written: %w", err)
	}
	return token, nil
}

// secret is new and cannot be guessed.
func secret() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// NewTicket makes a ticket: it lets in once, until two minutes from now, and tells
// nothing of the token. So nothing that is kept of a URL is of use afterwards (U05).
func NewTicket(token string, now time.Time) string {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce)
	body := append(binary.BigEndian.AppendUint64(nil, uint64(now.Add(ticketLife).Unix())), nonce...)
	return ticketPrefix + base64.RawURLEncoding.EncodeToString(append(body, ticketMAC(token, body)...))
}

func ticketMAC(token string, body []byte) []byte {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("the-loop web terminal ticket\n"))
	m.Write(body)
	return m.Sum(nil)
}

// logins knows who is in. Its methods may be called from several goroutines at once.
type logins struct {
	token string
	now   func() time.Time
	// began is when this process did, to the second.
	began time.Time

	mu   sync.Mutex
	used map[string]time.Time   // nonces of tickets, until they end by themselves
	in   map[[32]byte]time.Time // digests of cookies, until when
}

func newLogins(token string, now func() time.Time) *logins {
	return &logins{token: token, now: now, began: now().Truncate(time.Second), used: map[string]time.Time{}, in: map[[32]byte]time.Time{}}
}

// admit checks a token or a ticket and makes the value of a cookie.
func (l *logins) admit(credential string) (cookie string, ok bool) {
	if strings.HasPrefix(credential, ticketPrefix) {
		ok = l.redeem(strings.TrimPrefix(credential, ticketPrefix))
	} else {
		ok = equal(credential, l.token)
	}
	if !ok {
		return "", false
	}
	cookie = secret()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	l.in[sha256.Sum256([]byte(cookie))] = l.now().Add(loginLife)
	return cookie, true
}

// redeem checks a ticket, which is good once.
func (l *logins) redeem(ticket string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil || len(raw) != 8+16+sha256.Size {
		return false
	}
	body := raw[:24]
	until := time.Unix(int64(binary.BigEndian.Uint64(body)), 0)
	if !hmac.Equal(raw[24:], ticketMAC(l.token, body)) || !l.now().Before(until) {
		return false
	}
	// One from before this process began may have been used then.
	if until.Add(-ticketLife).Before(l.began) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	nonce := string(body[8:])
	if _, used := l.used[nonce]; used {
		return false
	}
	l.used[nonce] = until
	return true
}

// forget drops what is over. The caller holds mu.
func (l *logins) forget() {
	now := l.now()
	for nonce, until := range l.used {
		if !now.Before(until) {
			delete(l.used, nonce)
		}
	}
	var first [32]byte
	for id, until := range l.in {
		if !now.Before(until) {
			delete(l.in, id)
		} else if l.in[first].IsZero() || until.Before(l.in[first]) {
			first = id
		}
	}
	if len(l.in) >= maxLogins {
		delete(l.in, first)
	}
}

// valid reports whether a cookie is that of a login that lasts.
func (l *logins) valid(cookie string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	// By its digest: how long a look-up takes tells nothing of the cookies that there are.
	return l.now().Before(l.in[sha256.Sum256([]byte(cookie))])
}

// end ends a login.
func (l *logins) end(cookie string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.in, sha256.Sum256([]byte(cookie)))
}

// equal compares in a time that tells nothing, not even the length.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
