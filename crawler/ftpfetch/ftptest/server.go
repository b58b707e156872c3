package ftptest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goftp.io/server/v2"
	"goftp.io/server/v2/driver/file"
)

// A Server serves a directory to anonymous users, and records the commands it receives.
type Server struct {
	Addr string // host and port

	acceptPassword   func(password string) bool // nil: every password
	mu               sync.Mutex                 // guards receivedCommands
	receivedCommands []Command
}

// A Command is one line that a client sent, such as "RETR /a".
type Command struct {
	Text string
	At   time.Time // time of arrival
}

// Start serves dir on a loopback port until the test ends. acceptPassword says which passwords of
// the user anonymous are valid; nil: all.
func Start(t testing.TB, dir string, acceptPassword func(password string) bool) *Server {
	t.Helper()
	driver, err := file.NewDriver(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String(), acceptPassword: acceptPassword}
	commands := maps.Clone(server.DefaultCommands())
	commands["MDTM"] = advertisedCommand{commands["MDTM"]}
	srv, err := server.NewServer(&server.Options{
		Driver: driver, Auth: s, Perm: server.NewSimplePerm("ftp", "ftp"), Logger: s, Commands: commands,
	})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(l) }) // returns when l is closed
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return s
}

// An advertisedCommand is a command that FEAT lists.
type advertisedCommand struct{ server.Command }

// IsExtend implements server.Command.
func (advertisedCommand) IsExtend() bool { return true }

// ReceivedCommands returns the commands received so far.
func (s *Server) ReceivedCommands() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.receivedCommands)
}

// CommandsNamed returns the received commands that begin with one of words, in order.
func (s *Server) CommandsNamed(words ...string) (texts []string) {
	for _, c := range s.ReceivedCommands() {
		if word, _, _ := strings.Cut(c.Text, " "); slices.Contains(words, word) {
			texts = append(texts, c.Text)
		}
	}
	return texts
}

// CheckPasswd implements server.Auth.
func (s *Server) CheckPasswd(_ *server.Context, user, password string) (bool, error) {
	return user == "anonymous" && (s.acceptPassword == nil || s.acceptPassword(password)), nil
}

// PrintCommand implements server.Logger.
func (s *Server) PrintCommand(_, command, params string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receivedCommands = append(s.receivedCommands,
		Command{strings.TrimSpace(fmt.Sprint(command, " ", params)), time.Now()})
}

// Print implements server.Logger.
func (*Server) Print(string, any)                 {}
func (*Server) Printf(string, string, ...any)     {}
func (*Server) PrintResponse(string, int, string) {}
