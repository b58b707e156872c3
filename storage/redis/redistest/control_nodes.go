package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Do sends one command on a new connection, and returns the reply, which must be a string or a number.
// It does not follow redirections.
func (n *Node) Do(ctx context.Context, args ...string) (string, error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", n.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	// Send the command as an array of strings (RESP).
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	return readReply(bufio.NewReader(conn))
}

// readReply reads a reply that is a simple string, an integer, an error or a bulk string. It returns an
// empty string for null.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	case '$':
		length, err := strconv.Atoi(rest)
		if err != nil || length < 0 {
			return "", err
		}
		value := make([]byte, length+2)
		_, err = io.ReadFull(r, value)
		return string(value[:length]), err
	}
	return "", fmt.Errorf("reply %q is neither a string nor a number", line)
}

// KillNode kills the server with SIGKILL and waits for its end.
func (c *Cluster) KillNode(n *Node) {
	c.t.Helper()
	if err := n.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	<-n.exited
	n.cmd = nil
}

// StartKilledNode starts a server again that KillNode has killed. It keeps its data directory.
func (c *Cluster) StartKilledNode(n *Node) {
	c.t.Helper()
	if err := n.start(); err != nil {
		c.t.Fatal(err)
	}
}

// PID returns the process ID of the server, which must be running.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// Signal sends a signal to the server's process. SIGSTOP makes the server unresponsive.
func (n *Node) Signal(s syscall.Signal) error { return n.cmd.Process.Signal(s) }

// WaitReady waits until all running servers are ready, for at most 30 s.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), startTimeout)
	defer cancel()
	if err := retryUntilDone(ctx, func() error { return c.checkReady(ctx) }); err != nil {
		c.t.Fatalf("cluster: %v\n%s", err, c.logs())
	}
}

// IsMaster reports whether the server is a master now. It returns false if the server does not answer.
func (n *Node) IsMaster(ctx context.Context) bool {
	info, err := n.Do(ctx, "INFO", "replication")
	return err == nil && strings.Contains(info, "role:master")
}

// DoUntil repeats a command until its reply contains want, or ctx is done.
func (n *Node) DoUntil(ctx context.Context, want string, args ...string) error {
	return retryUntilDone(ctx, func() error {
		answer, err := n.Do(ctx, args...)
		if err == nil && !strings.Contains(answer, want) {
			err = fmt.Errorf("no %q in %q", want, answer)
		}
		return err
	})
}

// AwaitMasters waits until want masters run, for at most 30 s: until replicas have taken over from the
// masters that were killed.
func (c *Cluster) AwaitMasters(want int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), startTimeout)
	defer cancel()
	err := retryUntilDone(ctx, func() error {
		n := 0
		for _, node := range c.nodes {
			if node.cmd != nil && node.IsMaster(ctx) {
				n++
			}
		}
		if n != want {
			return fmt.Errorf("%d masters run, want %d", n, want)
		}
		return nil
	})
	if err != nil {
		c.t.Fatalf("cluster: %v\n%s", err, c.logs())
	}
}
