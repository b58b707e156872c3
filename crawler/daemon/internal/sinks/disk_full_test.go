package sinks

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

// A limitedWriter accepts capacity bytes, and then fails with err.
type limitedWriter struct {
	bytes.Buffer
	mu       sync.Mutex // guards capacity
	capacity int
	err      error
}

func (c *limitedWriter) addCapacity(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capacity = n
}

func (c *limitedWriter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(c.capacity, len(p))
	c.capacity -= n
	c.Buffer.Write(p[:n])
	if n < len(p) {
		return n, &fs.PathError{Op: "write", Path: "pages.jsonl", Err: c.err}
	}
	return n, nil
}

// A line that a full disk has cut is completed when there is space again, and the pause is logged once.
func TestOutputWaitsForDiskSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &limitedWriter{capacity: 6, err: syscall.ENOSPC}
		var logText bytes.Buffer
		o := &JSONLRecorder{w: w, diskFull: diskFullRetrier{log: slog.New(slog.NewTextHandler(&logText, nil))}}
		time.AfterFunc(time.Minute, func() { w.addCapacity(100) })
		begin := time.Now()
		for _, line := range []string{"one\n", "two\n", "three\n"} {
			if err := o.writeLine(t.Context(), []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took < time.Minute || w.String() != "one\ntwo\nthree\n" {
			t.Errorf("wrote %q in %v, want all lines after a minute", w.String(), took)
		}
		if n := strings.Count(logText.String(), "\n"); n != 2 || !strings.Contains(logText.String(), "no space left") {
			t.Errorf("%d lines are logged, want a pause and its end:\n%s", n, logText.String())
		}
	})
}

// A crawl that is stopped while the disk is full does not wait, and writes nothing after the torn line.
func TestOutputWaitIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &limitedWriter{capacity: 2, err: syscall.EFBIG}
		o := &JSONLRecorder{w: w}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if err := o.writeLine(ctx, []byte("one\n")); !errors.Is(err, syscall.EFBIG) ||
			time.Since(begin) != time.Minute {
			t.Errorf("error %v after %v, want the error of the disk, after a minute", err, time.Since(begin))
		}
		w.addCapacity(100)
		if err := o.writeLine(t.Context(), []byte("two\n")); err == nil || w.String() != "on" {
			t.Errorf("error %v, wrote %q; want nothing after the torn line", err, w.String())
		}
	})
}
