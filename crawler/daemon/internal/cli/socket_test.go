package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// While a daemon runs, the commands call it through the socket of its directory without a token, and
// the audit log says so. When the daemon has ended, the socket is gone.
func TestSocket(t *testing.T) {
	var dir datadir.StateDir
	t.Cleanup(func() { // runs after the daemon has ended
		if _, err := os.Lstat(dir.Path(datadir.SocketFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after the end, the socket is still there: %v", err)
		}
	})
	f := newCommandFixture(t)
	f.Start(false)
	dir = f.Supervisor.DataDir
	f.serveSocket()
	info, err := os.Lstat(dir.Path(datadir.SocketFile))
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Fatalf("the socket is %v, %v; want mode 0600", info, err)
	}
	if err := os.Chmod(dir.Path(server.TokenFile), 0); err != nil { // the socket needs no token
		t.Fatal(err)
	}
	runCommand(t, "brake", "a.example", "--reason", "they wrote", "--data", string(dir)).want(t,
		command.ExitDone, "a.example: stopped")
	runCommand(t, "top", "--data", string(dir)).want(t, command.ExitDone, "a.example", "they wrote")
	audit, err := os.ReadFile(dir.Path(datadir.AuditFile))
	if err != nil {
		t.Fatal(err)
	}
	var e api.AuditEntry
	if err := json.Unmarshal(audit, &e); err != nil { // it has one entry: the calls of top are not audited
		t.Fatalf("%v: %s", err, audit)
	}
	if e.Who != "socket" || e.Role != "operate" || !strings.HasPrefix(e.Remote, "unix") {
		t.Errorf("the audit has %+v", e)
	}
}

// serveSocket serves the API of the daemon on its socket and on a loopback port, as decorum serve
// does, until the test ends.
func (f *commandFixture) serveSocket() {
	f.T.Helper()
	var opts server.ListenOptions
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	opts.AddFlags(flags)
	if err := flags.Parse([]string{"--listen=127.0.0.1:0"}); err != nil {
		f.T.Fatal(err)
	}
	g, err := server.OpenListeners(f.T.Context(), opts, slog.New(slog.DiscardHandler))
	if err != nil {
		f.T.Fatal(err)
	}
	if err := g.AttachDaemon(f.Supervisor, opts); err != nil {
		f.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx) }()
	f.T.Cleanup(func() {
		cancel()
		if err := errors.Join(<-served, g.Close()); err != nil {
			f.T.Error(err)
		}
	})
}

// TestSocketFileIsReplaced checks that a process replaces the socket of a killed process, but no other
// file.
func TestSocketFileIsReplaced(t *testing.T) {
	dir := datadir.StateDir(t.TempDir())
	lock := lockUntilEnd(t, dir)
	leaveSocket(t, dir.Path(datadir.SocketFile))
	l, err := lock.ListenSocket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := dir.DialSocket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), l.Close(), lock.Close()); err != nil {
		t.Error(err)
	}
	lock = lockUntilEnd(t, dir)
	// The socket has been removed.
	if err := os.WriteFile(dir.Path(datadir.SocketFile), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.ListenSocket(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("with a file in the way: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(dir.Path(datadir.SocketFile)); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// leaveSocket makes a socket without a listener, as a killed process leaves it.
func leaveSocket(t *testing.T, name string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// lockUntilEnd locks a directory until the lock is closed or the test ends.
func lockUntilEnd(t *testing.T, dir datadir.StateDir) *datadir.DirectoryLock {
	t.Helper()
	lock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() }) // the test may have closed it
	return lock
}

// If the path of a data directory is too long for a socket, the socket is in a temporary directory of
// the user, which the lock file names while the lock is held. The next process that locks the data
// directory removes the socket of a killed process, but not that of a living one, which a copy of its
// lock file names.
func TestSocketOfALongPath(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := datadir.StateDir(filepath.Join(t.TempDir(), strings.Repeat("long/", 40)))
	lock := lockUntilEnd(t, dir)
	l, err := lock.ListenSocket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tempDirs := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	all := tempDirs()
	if len(all) != 1 {
		t.Fatalf("the temporary directories are %v; want one", all)
	}
	if info, err := os.Stat(all[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	lockText, err := os.ReadFile(dir.Path(datadir.LockFile))
	if err != nil || !strings.Contains(string(lockText), all[0]) {
		t.Errorf("the lock has %q, %v", lockText, err)
	}
	c, err := dir.DialSocket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A copy of the directory also names the socket.
	copied := datadir.StateDir(t.TempDir())
	if err := os.WriteFile(copied.Path(datadir.LockFile), lockText, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := copied.DialSocket(t.Context()); err == nil {
		t.Error("the copy is not locked, and its socket is dialed")
		c.Close()
	}
	lockUntilEnd(t, copied)
	if left := tempDirs(); len(left) != 1 {
		t.Errorf("the socket of a living process was removed: %v is left", left)
	}
	// The process is killed, and another one locks the directory.
	if err := errors.Join(l.Close(), lock.Close()); err != nil || len(tempDirs()) > 0 {
		t.Errorf("%v; %v is left", err, tempDirs())
	}
	if err := os.Mkdir(all[0], 0o700); err != nil {
		t.Fatal(err)
	}
	leaveSocket(t, filepath.Join(all[0], datadir.SocketFile))
	if err := os.WriteFile(dir.Path(datadir.LockFile), lockText, 0o600); err != nil {
		t.Fatal(err)
	}
	lockUntilEnd(t, dir)
	if left := tempDirs(); len(left) > 0 {
		t.Errorf("%v is left of a killed process", left)
	}
}

// asPeerEnv is the environment variable that makes the test binary connect to a socket and print what
// it reads there.
const asPeerEnv = "DECORUM_TEST_AS_PEER"

func runPeer(name string) {
	c, err := net.Dial("unix", name)
	if err != nil {
		panic(err)
	}
	text := make([]byte, 100)
	n, _ := c.Read(text)
	os.Stdout.Write(text[:n])
	os.Exit(0)
}

// Another user cannot operate the daemon, even if the mode of the socket file permits the connection.
func TestSocketIsItsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	name := filepath.Join(socketDirForAll(t), datadir.SocketFile)
	dir := datadir.StateDir(filepath.Dir(name))
	l, err := lockUntilEnd(t, dir).ListenSocket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	go testlisten.Serve(l, func(c net.Conn) {
		_, _ = c.Write([]byte("welcome"))
		c.Close()
	})
	got := map[uint32]string{}
	for _, uid := range []uint32{65534, 0} {
		c, stderr := newCommandProcess(t)
		c.Env = append(os.Environ(), asPeerEnv+"="+name)
		c.Path, c.Args = testBinaryForAll(t), []string{"peer"}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		got[uid] = string(out)
	}
	if diff := cmp.Diff(map[uint32]string{0: "welcome", 65534: ""}, got); diff != "" {
		t.Errorf("what each user receives (-want +got):\n%s", diff)
	}
}

// socketDirForAll returns a directory that every user can enter.
func socketDirForAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "decorum-socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// testBinaryForAll returns a copy of the test binary that every user can run.
func testBinaryForAll(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(socketDirForAll(t), "peer")
	if err := os.WriteFile(name, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}
