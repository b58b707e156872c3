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

// Do sends one command by a connection of its own, and returns the answer: a
// string or a number. It does not follow redirections.
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
	return "", fmt.Errorf("answer %q is of no kind that is read here", line)
}

// KillNode ends the server at once, as a crash does.
func (c *Cluster) KillNode(n *Node) {
	c.t.Helper()
	if err := n.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	<-n.exited
	n.cmd = nil
}

// StartKilledNode starts a server that was killed.
func (c *Cluster) StartKilledNode(n *Node) {
	c.t.Helper()
	if err := n.start(); err != nil {
		c.t.Fatal(err)
	}
}

// PID returns the id of the server's process.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// Signal sends the process of a server a signal.
func (n *Node) Signal(s syscall.Signal) error { return n.cmd.Process.Signal(s) }

// WaitReady waits until all servers that run are in order again.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), startTimeout)
	defer cancel()
	if err := retryUntilDone(ctx, func() error { return c.checkReady(ctx) }); err != nil {
		c.t.Fatalf("cluster: %v\n%s", err, c.logs())
	}
}

// IsMaster reports whether the server is a master now.
func (n *Node) IsMaster(ctx context.Context) bool {
	info, err := n.Do(ctx, "INFO", "replication")
	return err == nil && strings.Contains(info, "role:master")
}

// DoUntil sends a command until the answer holds what is wanted.
func (n *Node) DoUntil(ctx context.Context, want string, args ...string) error {
	return retryUntilDone(ctx, func() error {
		answer, err := n.Do(ctx, args...)
		if err == nil && !strings.Contains(answer, want) {
			err = fmt.Errorf("no %q in %q", want, answer)
		}
		return err
	})
}

// AwaitMasters waits until there are so many masters that run: until replicas have
// taken over from those that were killed.
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
