package decorum_test

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var runReadme = flag.Bool("tour", false, "walk through the README as a newcomer does: builds, a demo, a crawl, callbacks, a daemon")

// A readmeBlock is a block of the README behind a comment that readers do not
// see: commands, or the text of a file.
type readmeBlock struct{ file, text string }

var readmeBlockPattern = regexp.MustCompile("(?ms)^<!-- tour(?:: (\\S+))? -->\n```\\w+\n(.*?)^```$")

func readReadmeBlocks(t *testing.T) []readmeBlock {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var steps []readmeBlock
	for _, m := range readmeBlockPattern.FindAllStringSubmatch(string(readme), -1) {
		steps = append(steps, readmeBlock{file: m[1], text: m[2]})
	}
	if n := strings.Count(string(readme), "<!-- tour"); n != len(steps) || n < 7 {
		t.Fatalf("%d of %d steps can be read", len(steps), n)
	}
	return steps
}

// TestReadme does what the README tells a newcomer to do, in a copy of this directory
// and as it is printed. It takes ports 8080 and 8470.
func TestReadme(t *testing.T) {
	steps := readReadmeBlocks(t)
	if !*runReadme {
		t.Skip("minutes of building and polite crawling: run with -tour")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	sh := openShell(t, dir)
	var output strings.Builder
	for i, s := range steps {
		begin := time.Now()
		if s.file == "" {
			output.WriteString(sh.run(s.text))
		} else if err := writeBlockFile(filepath.Join(dir, s.file), s.text); err != nil {
			t.Fatal(err)
		}
		what, _, _ := strings.Cut(cmp.Or(s.file, s.text), "\n")
		t.Logf("step %d took %6.1f s: %s", i+1, time.Since(begin).Seconds(), what)
	}
	sh.run("kill %1 %2\nwait\n")
	for _, want := range []string{
		"0 disallowed by robots.txt",                 // the demo
		"library.example",                            // the report
		"disallow: /loans/",                          // explain
		"http://library.example/shelves/1/ Here and", // the callback
		"library  running",                           // top
	} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("nothing of it said %q", want)
		}
	}
	if t.Failed() {
		t.Log(output.String())
	}
}

func writeBlockFile(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// A shell is the one in which the tour is made.
type shell struct {
	t        *testing.T
	in       io.Writer
	out      *bufio.Reader
	commands int
}

// openShell opens a shell that ends at the first command that fails. Whatever it
// started ends with the test.
func openShell(t *testing.T, dir string) *shell {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	c := exec.CommandContext(ctx, "bash", "-e", "-m")
	c.Dir, c.WaitDelay = dir, 30*time.Second
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w := io.Pipe()
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.CloseWithError(c.Wait())
	}()
	t.Cleanup(func() {
		fmt.Fprintln(in, "kill $(jobs -p)")
		in.Close()
		out.Close()
		<-ended
		cancel()
	})
	return &shell{t: t, in: in, out: bufio.NewReader(out)}
}

// run runs commands, and returns what was said until they were done, by what runs in
// the background too. Of what they end with in the background it awaits the words that
// it serves.
func (s *shell) run(commands string) string {
	s.t.Helper()
	s.commands++
	done := fmt.Sprintf("step-%d-is-done", s.commands)
	fmt.Fprintf(s.in, "%s\necho\necho %s\n", commands, done)
	var output strings.Builder
	serves := strings.HasSuffix(strings.TrimSpace(commands), "&")
	for ended := false; !ended || serves && !strings.Contains(output.String(), "serving"); {
		line, err := s.out.ReadString('\n')
		if strings.TrimSpace(line) == done {
			ended = true
			continue
		}
		output.WriteString(line)
		if err != nil {
			s.t.Fatalf("%v in\n%s\n%s", err, commands, &output)
		}
	}
	return output.String()
}
