package daemon

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A crowded writer takes as many bytes as it has room for.
type crowded struct {
	bytes.Buffer
	mu       sync.Mutex // of room
	capacity int
	why      error
}

func (c *crowded) addCapacity(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capacity = n
}

func (c *crowded) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(c.capacity, len(p))
	c.capacity -= n
	c.Buffer.Write(p[:n])
	if n < len(p) {
		return n, &fs.PathError{Op: "write", Path: "pages.jsonl", Err: c.why}
	}
	return n, nil
}

// TestOutputWaitsForRoom: the line that was begun is ended when there is room,
// and the pause is said once.
func TestOutputWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &crowded{capacity: 6, why: syscall.ENOSPC}
		var said bytes.Buffer
		o := &output{w: w, log: slog.New(slog.NewTextHandler(&said, nil))}
		time.AfterFunc(time.Minute, func() { w.addCapacity(100) })
		begin := time.Now()
		for _, line := range []string{"one\n", "two\n", "three\n"} {
			if err := o.write(t.Context(), []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took < time.Minute || w.String() != "one\ntwo\nthree\n" {
			t.Errorf("wrote %q in %v, want all lines after a minute", w.String(), took)
		}
		if n := strings.Count(said.String(), "\n"); n != 2 || !strings.Contains(said.String(), "no space left") {
			t.Errorf("said in %d lines, want a pause and its end:\n%s", n, said.String())
		}
	})
}

// TestOutputGivesUp: a crawl that is stopped meanwhile does not wait, and
// nothing follows a torn line.
func TestOutputGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &crowded{capacity: 2, why: syscall.EFBIG}
		o := &output{w: w}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if err := o.write(ctx, []byte("one\n")); !errors.Is(err, syscall.EFBIG) || time.Since(begin) != time.Minute {
			t.Errorf("error %v after %v, want what was wrong, after a minute", err, time.Since(begin))
		}
		w.addCapacity(100)
		if err := o.write(t.Context(), []byte("two\n")); err == nil || w.String() != "on" {
			t.Errorf("error %v, wrote %q; want nothing after the torn line", err, w.String())
		}
	})
}
