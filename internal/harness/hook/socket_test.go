package hook_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/harness/hook"
)

var _ = Describe("the socket", func() {
	var socket string
	BeforeEach(func() {
		dir, err := os.MkdirTemp("", "hook")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		socket = filepath.Join(dir, "s")
	})
	listen := func() (<-chan string, context.CancelFunc) {
		GinkgoHelper()
		ctx, cancel := context.WithCancel(context.Background())
		DeferCleanup(cancel)
		pokes, err := hook.Listen(ctx, socket)
		Expect(err).NotTo(HaveOccurred())
		return pokes, cancel
	}

	It("carries pokes, is private, and goes with its context", func() {
		pokes, cancel := listen()
		st, err := os.Stat(socket)
		Expect(err).NotTo(HaveOccurred())
		Expect(st.Mode().Perm()).To(Equal(os.FileMode(0o600)))

		Expect(hook.Poke(socket, "one")).To(Succeed())
		Expect(hook.Poke(socket, "")).To(Succeed())
		Expect(hook.Poke(socket, strings.Repeat("x", hook.MaxPoke))).To(Succeed())
		Eventually(pokes).Should(Receive(Equal("one")))
		Eventually(pokes).Should(Receive(BeEmpty()))
		Eventually(pokes).Should(Receive(HaveLen(hook.MaxPoke)))

		cancel()
		Eventually(pokes).Should(BeClosed())
		Expect(socket).NotTo(BeAnExistingFile())
	})

	It("fails at once when nobody is there", func() {
		Expect(hook.Poke(socket, "x")).To(MatchError(syscall.ENOENT))
	})

	It("fails at once when the listener does not read", func() {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		Eventually(func() error { return hook.Poke(socket, "x") }).Should(MatchError(syscall.EAGAIN))
	})

	It("replaces a socket that nobody is behind", func() {
		stale, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		Expect(err).NotTo(HaveOccurred())
		Expect(stale.Close()).To(Succeed())
		Expect(socket).To(BeAnExistingFile())
		pokes, _ := listen()
		Expect(hook.Poke(socket, "x")).To(Succeed())
		Eventually(pokes).Should(Receive(Equal("x")))
	})

	It("refuses a socket that somebody listens on, and leaves it working", func() {
		pokes, _ := listen()
		_, err := hook.Listen(context.Background(), socket)
		Expect(err).To(MatchError(ContainSubstring("another process listens")))
		Expect(hook.Poke(socket, "x")).To(Succeed())
		Eventually(pokes).Should(Receive(Equal("x")))
	})

	It("does not remove a file that is no socket", func() {
		Expect(os.WriteFile(socket, []byte("precious"), 0o600)).To(Succeed())
		_, err := hook.Listen(context.Background(), socket)
		Expect(err).To(MatchError(ContainSubstring("is no socket")))
		Expect(os.ReadFile(socket)).To(BeEquivalentTo("precious"))
	})

	It("removes at its end only its own socket", func() {
		pokes, cancel := listen()
		Expect(os.Remove(socket)).To(Succeed())
		Expect(os.WriteFile(socket, nil, 0o600)).To(Succeed())
		cancel()
		Eventually(pokes).Should(BeClosed())
		Expect(socket).To(BeAnExistingFile())
	})

	It("says when it cannot bind", func() {
		_, err := hook.Listen(context.Background(), filepath.Join(socket, "missing", "s"))
		Expect(errors.Is(err, syscall.ENOENT)).To(BeTrue())
	})

	DescribeTable("paths that cannot be sockets",
		func(path, says string) {
			_, err := hook.Listen(context.Background(), path)
			Expect(err).To(MatchError(ContainSubstring(says)))
			Expect(hook.Poke(path, "x")).To(MatchError(ContainSubstring(says)))
		},
		Entry("too long", "/"+strings.Repeat("a", hook.MaxSocketPath), "the limit is 107"),
		Entry("relative", "s", "is not absolute"),
		Entry("abstract", "@s", "is not absolute"),
	)

	It("takes a path of the limit", func() {
		path := filepath.Join(filepath.Dir(socket), strings.Repeat("a", hook.MaxSocketPath-len(filepath.Dir(socket))-1))
		Expect(path).To(HaveLen(hook.MaxSocketPath))
		ctx, cancel := context.WithCancel(context.Background())
		pokes, err := hook.Listen(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		Expect(hook.Poke(path, "x")).To(Succeed())
		Eventually(pokes).Should(Receive())
		cancel()
		Eventually(pokes).Should(BeClosed())
	})

	It("refuses a payload that would be cut", func() {
		Expect(hook.Poke(socket, strings.Repeat("x", hook.MaxPoke+1))).To(MatchError(ContainSubstring("the limit is 4096")))
	})
})
