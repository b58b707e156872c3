package decorum_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var runReadme = flag.Bool("tour", false,
	"run the README's commands: a demo, a crawl, a program with callbacks, a daemon")

// A readmeBlock is a block of the README that follows a tour comment, which readers do not
// see: commands, or the text of the file whose path, relative to the clone, the comment names.
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

// TestReadme runs the README's commands as they are printed, in a copy of the clone. Each of them
// succeeds: the demo, and at the end the judge of the sample sites, which finds that the tour's crawls
// broke no rule and requested no page twice. The clone stays as it was. It takes ports 8080 and 8470.
func TestReadme(t *testing.T) {
	steps := readReadmeBlocks(t)
	if !*runReadme {
		t.Skip("builds and crawls politely for minutes: run with -tour")
	}
	clone := filepath.Join(t.TempDir(), "decorum")
	if err := os.CopyFS(clone, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	filesBefore := hashFiles(t, clone)
	sh := openShell(t, clone)
	var output strings.Builder
	var lastStep string
	for i, s := range steps {
		begin := time.Now()
		if s.file == "" {
			lastStep = sh.run(s.text)
			output.WriteString(lastStep)
		} else if err := os.WriteFile(filepath.Join(clone, s.file), []byte(s.text), 0o644); err != nil {
			t.Fatal(err)
		}
		what, _, _ := strings.Cut(cmp.Or(s.file, s.text), "\n")
		t.Logf("step %d took %6.1f s: %s", i+1, time.Since(begin).Seconds(), what)
	}
	for _, want := range []string{
		"0 disallowed by robots.txt",               // the demo
		"library.example",                          // the report
		"disallow: /loans/",                        // explain
		"http://garden.example/beds/shade/ In the", // the callback
		"museum   running",                         // top
	} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("no step printed %q", want)
		}
	}
	// The last step waits for the judge of the sample sites: sh.run fails unless its exit code is 0.
	for _, want := range []string{"0  garden.example\n", "0  library.example\n", "     0 gap too short\n",
		"     0 requested again\n"} {
		if !strings.Contains(lastStep, want) {
			t.Errorf("the judge of the sample sites did not print %q", want)
		}
	}
	checkSameFiles(t, filesBefore, hashFiles(t, clone))
	if t.Failed() {
		t.Log(output.String())
	}
}

// hashFiles returns the SHA-256 of each file below a directory, by its path.
func hashFiles(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	sums := map[string][sha256.Size]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		sums[name] = sha256.Sum256(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// checkSameFiles reports the files that were added, changed or removed.
func checkSameFiles(t *testing.T, before, after map[string][sha256.Size]byte) {
	t.Helper()
	for name, sum := range after {
		if was, ok := before[name]; !ok {
			t.Errorf("the tour left %s in the clone", name)
		} else if was != sum {
			t.Errorf("the tour changed %s in the clone", name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Errorf("the tour removed %s from the clone", name)
		}
	}
}

// A shell runs the steps of the tour.
type shell struct {
	t        *testing.T
	in       io.Writer
	out      *bufio.Reader
	commands int
}

// openShell opens a shell that ends at the first command that fails, or with the test. It ends the
// programs in its background then.
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
	fmt.Fprintln(in, "trap 'kill $(jobs -p)' EXIT")
	t.Cleanup(func() {
		in.Close()
		out.Close()
		<-ended
		cancel()
	})
	return &shell{t: t, in: in, out: bufio.NewReader(out)}
}

// run runs commands, and returns what they and the programs in the background printed until they
// ended. If the last command starts a program in the background, run also waits until that program
// prints that it is serving.
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
		if strings.Contains(line, "address already in use") { // the program will never serve
			s.t.Fatalf("%s%s", commands, line)
		}
	}
	return output.String()
}
