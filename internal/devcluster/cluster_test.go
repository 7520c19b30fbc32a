package devcluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "b"}}
}

var _ = Describe("A running control plane", Ordered, func() {
	var (
		dir, requests string
		c             *Cluster
	)
	BeforeAll(func() {
		dir = newDir()
		requests = filepath.Join(GinkgoT().TempDir(), "requests.log")
		o := testOptions(dir)
		o.RequestLog = requests
		o.ExtraAPIServerArgs = []string{"--event-ttl=30m"}
		c = start(o)
	})

	It("is reached through its kubeconfig", func(ctx SpecContext) {
		Expect(c.Kubeconfig()).To(Equal(filepath.Join(dir, "kubeconfig")))
		raw, err := clientcmd.LoadFromFile(c.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		Expect(raw.CurrentContext).To(Equal("the-loop"))
		Expect(raw.Contexts["the-loop"].Cluster).To(Equal("the-loop"))
		Expect(raw.Contexts["the-loop"].AuthInfo).To(Equal("the-loop"))
		Expect(raw.Clusters["the-loop"].Server).To(MatchRegexp(`^https://127\.0\.0\.1:\d+$`))
		cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		_, err = client(cfg).CoreV1().ConfigMaps("default").Create(ctx, configMap("by-kubeconfig"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("reports the pinned version", func() {
		v, err := client(c.Config()).Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(v.GitVersion).To(Equal("v" + v.Major + "." + v.Minor + "." + strings.SplitN(v.GitVersion, ".", 3)[2]))
	})

	It("keeps its files to this user", func() {
		Expect(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && info.Mode().Type() != fs.ModeSocket {
				Expect(info.Mode().Perm()&0o077).To(BeZero(), path)
			}
			return err
		})).To(Succeed())
	})

	It("listens on 127.0.0.1 only", func() {
		for _, name := range []string{etcdName, apiserverName} {
			Expect(listeners(pidOf(dir, name))).To(And(HaveLen(1), HaveEach(HavePrefix("0100007F:"))), name)
		}
	})

	It("keeps its children out of the reach of Ctrl-C", func() {
		for _, name := range []string{etcdName, apiserverName} {
			pid := pidOf(dir, name)
			Expect(syscall.Getpgid(pid)).To(Equal(pid), name)
		}
	})

	It("answers nobody without a certificate", func(ctx SpecContext) {
		_, err := client(rest.AnonymousClientConfig(c.Config())).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
	})

	It("opens etcd to the API server only", func() {
		user, err := c.ConfigFor("mallory", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		pair, err := tls.X509KeyPair(user.CertData, user.KeyData)
		Expect(err).NotTo(HaveOccurred())
		for who, certs := range map[string][]tls.Certificate{"nobody": nil, "a user of the API": {pair}} {
			// The server is known; the client's rights are in question.
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs}}
			_, err := (&http.Client{Transport: transport}).Get(serverURL(c.ports.Etcd) + "/version")
			Expect(err).To(MatchError(ContainSubstring("tls:")), who)
			transport.CloseIdleConnections()
		}
	})

	It("lets a user do what RBAC grants, and logs it under the user's name", func(ctx SpecContext) {
		_, err := c.ConfigFor("")
		Expect(err).To(MatchError(ContainSubstring("user name")))
		cfg, err := c.ConfigFor("hal", "robots", "night shift")
		Expect(err).NotTo(HaveOccurred())
		hal, admin := client(cfg), client(c.Config())
		create := func(name string) error {
			_, err := hal.CoreV1().ConfigMaps("default").Create(ctx, configMap(name), metav1.CreateOptions{})
			return err
		}
		Expect(apierrors.IsForbidden(create("hal-1"))).To(BeTrue())
		_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "robots"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "robots"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "robots"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "night shift"}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(create).WithArguments("hal-2").Should(Succeed())

		log, err := ReadRequestLog(requests)
		Expect(err).NotTo(HaveOccurred())
		var writes []string
		for _, r := range log {
			if r.User != "hal" {
				continue
			}
			Expect(r.Groups).To(ContainElements("robots", "night shift"))
			Expect(r.Time).To(BeTemporally("~", time.Now(), time.Minute))
			if r.IsWrite() {
				writes = append(writes, fmt.Sprintf("%s %s/%s/%s %d", r.Verb, r.Namespace, r.Resource, r.Name, r.Code))
			}
		}
		Expect(writes).To(ContainElement("create default/configmaps/ 403"))
		Expect(writes[len(writes)-1]).To(Equal("create default/configmaps/hal-2 201"))
	})

	It("issues ServiceAccount tokens and stores pods without a controller-manager", func(ctx SpecContext) {
		admin := client(c.Config())
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "bot"}}
		_, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, sa, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		token, err := admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "bot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		cfg := rest.AnonymousClientConfig(c.Config())
		cfg.BearerToken = token.Status.Token
		me, err := client(cfg).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(me.Status.UserInfo.Username).To(Equal("system:serviceaccount:default:bot"))
		_, err = admin.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "never-runs"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("refuses a second start and names the process that holds the directory", func(ctx SpecContext) {
		_, err := Start(ctx, testOptions(dir))
		var locked *LockedError
		Expect(err).To(BeAssignableToTypeOf(locked))
		Expect(err).To(MatchError(And(ContainSubstring(dir), ContainSubstring("process %d:", os.Getpid()))))
		_, err = StopProcesses(ctx, dir)
		Expect(err).To(BeAssignableToTypeOf(locked))
		Expect(Processes(dir)).To(HaveLen(2))
	})

	It("survives an outage of its API server on the same port with the same data", func(ctx SpecContext) {
		etcd, url := pidOf(dir, etcdName), c.Config().Host
		admin := client(c.Config())
		Expect(c.StartAPIServer(ctx)).To(MatchError(ContainSubstring("runs already")))
		Expect(c.StopAPIServer(ctx)).To(Succeed())
		Expect(c.StopAPIServer(ctx)).To(Succeed())
		_, err := admin.CoreV1().ConfigMaps("default").Get(ctx, "by-kubeconfig", metav1.GetOptions{})
		Expect(err).To(MatchError(syscall.ECONNREFUSED))
		Consistently(c.Done(), "200ms").ShouldNot(BeClosed())

		By("refusing to start it while another process has its port")
		other, err := net.Listen("tcp", strings.TrimPrefix(url, "https://"))
		Expect(err).NotTo(HaveOccurred())
		err = c.StartAPIServer(ctx)
		Expect(other.Close()).To(Succeed())
		Expect(err).To(MatchError(ContainSubstring("is taken by process %d", os.Getpid())))

		Expect(c.StartAPIServer(ctx)).To(Succeed())
		Expect(c.Config().Host).To(Equal(url))
		Expect(pidOf(dir, etcdName)).To(Equal(etcd))
		_, err = admin.CoreV1().ConfigMaps("default").Get(ctx, "by-kubeconfig", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Done()).NotTo(BeClosed())
	}, NodeTimeout(time.Minute))

	It("stops within five seconds although a watch is open, and starts again as it was", func(ctx SpecContext) {
		kubeconfig, err := os.ReadFile(c.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		w, err := client(c.Config()).CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()

		begin := time.Now()
		Expect(c.Stop(ctx)).To(Succeed())
		Expect(time.Since(begin)).To(BeNumerically("<", 5*time.Second))
		AddReportEntry("stop", time.Since(begin))
		Expect(c.Done()).To(BeClosed())
		Expect(c.Err()).NotTo(HaveOccurred())
		Expect(c.Stop(ctx)).To(Succeed(), "a second time")
		Expect(c.StartAPIServer(ctx)).To(MatchError(ContainSubstring("was stopped")))
		Expect(Processes(dir)).To(BeEmpty())
		Expect(os.ReadDir(filepath.Join(dir, "run"))).To(HaveLen(1), "only the audit policy")

		begin = time.Now()
		again := start(testOptions(dir))
		AddReportEntry("start", time.Since(begin))
		Expect(os.ReadFile(again.Kubeconfig())).To(Equal(kubeconfig))
		_, err = client(c.Config()).CoreV1().ConfigMaps("default").Get(ctx, "by-kubeconfig", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(filepath.Join(dir, "logs", "kube-apiserver.log.1")).To(BeARegularFile())
		Expect(again.Stop(ctx)).To(Succeed())
	}, NodeTimeout(time.Minute))
})

// listeners returns the local addresses, in the kernel's notation, of the
// process's listening TCP sockets.
func listeners(pid int) []string {
	GinkgoHelper()
	var out []string
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(filepath.Join("/proc/net", table))
		Expect(err).NotTo(HaveOccurred())
		for line := range bytes.Lines(b) {
			w := strings.Fields(string(line))
			if len(w) > 9 && w[3] == "0A" && holdsSocket(pid, w[9]) {
				out = append(out, w[1])
			}
		}
	}
	return out
}

func holdsSocket(pid int, inode string) bool {
	fds, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && link == "socket:["+inode+"]" {
			return true
		}
	}
	return false
}

var _ = Describe("A child that ends by itself", Ordered, func() {
	var (
		dir string
		c   *Cluster
	)
	BeforeAll(func() {
		dir = newDir()
		c = start(testOptions(dir))
	})

	It("is reported with its name, its end and its last words", func() {
		pid := pidOf(dir, apiserverName)
		Expect(c.Err()).NotTo(HaveOccurred())
		Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
		Eventually(c.Done()).Should(BeClosed())
		Expect(c.Err()).To(MatchError(And(
			ContainSubstring("kube-apiserver (pid %d) ended by itself: signal: killed", pid),
			ContainSubstring(filepath.Join(dir, "logs", "kube-apiserver.log")),
			MatchRegexp(`\n    [IWE]\d{4} `),
		)))
		Expect(pidOf(dir, apiserverName)).To(BeZero())
	})

	It("can be started again when it was the API server", func(ctx SpecContext) {
		Expect(c.StartAPIServer(ctx)).To(Succeed())
		_, err := client(c.Config()).CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Done()).To(BeClosed())
	}, NodeTimeout(time.Minute))

	It("does not keep Stop from ending the other within five seconds", func(ctx SpecContext) {
		Expect(syscall.Kill(pidOf(dir, etcdName), syscall.SIGKILL)).To(Succeed())
		Eventually(pidOf).WithArguments(dir, etcdName).Should(BeZero())
		Expect(c.StopAPIServer(ctx)).To(Succeed())
		Expect(c.StartAPIServer(ctx)).To(MatchError(ContainSubstring("etcd of the control plane")))
		begin := time.Now()
		Expect(c.Stop(ctx)).To(Succeed())
		Expect(time.Since(begin)).To(BeNumerically("<", 5*time.Second))
		Expect(c.Err()).To(MatchError(ContainSubstring("kube-apiserver")), "still the first")
	}, NodeTimeout(time.Minute))
})

var _ = Describe("A child that does not want to end", func() {
	startStubborn := func() *child {
		GinkgoHelper()
		d := layout(newDir())
		Expect(d.make()).To(Succeed())
		c, err := startChild(d, program{name: etcdName, path: "/bin/sh", dir: string(d), args: []string{
			"-c", `trap "" TERM; echo armed; while :; do sleep 0.1; done`,
		}})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() []string { return lastLines(d.log(etcdName)) }).Should(ContainElement("armed\n"))
		return c
	}

	It("is killed at the deadline", func() {
		c := startStubborn()
		begin := time.Now()
		Expect(c.stop(context.Background(), begin.Add(300*time.Millisecond))).To(Succeed())
		Expect(time.Since(begin)).To(And(BeNumerically(">=", 300*time.Millisecond), BeNumerically("<", 5*time.Second)))
		Expect(c.ended()).To(BeTrue())
	})

	It("is killed when the context ends before that", func() {
		c := startStubborn()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		begin := time.Now()
		Expect(c.stop(ctx, begin.Add(time.Minute))).To(Succeed())
		Expect(time.Since(begin)).To(BeNumerically("<", 5*time.Second))
	})
})
