package robotstools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/robots"
)

func TestEvaluateLinesErrors(t *testing.T) {
	const line = `{"robots":""}` + "\n"
	broken := errors.New("broken")
	var out bytes.Buffer
	in := io.MultiReader(strings.NewReader(line+line[:5]), iotest.ErrReader(broken))
	if err := evaluateBatch(in, &out, newBatchEvaluator(robots.Google, "*")); !errors.Is(err, broken) ||
		strings.Count(out.String(), "\n") != 1 {
		t.Errorf("error = %v, answers %q", err, out.String())
	}
	if err := evaluateBatch(strings.NewReader(line), errorWriter{broken},
		newBatchEvaluator(robots.Google, "*")); !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
}

// A byte order mark may begin the input, but not a later line (RFC 8259, section 8.1).
func TestEvaluateLinesByteOrderMark(t *testing.T) {
	const mark, line = "\ufeff", `{"robots":""}` + "\n"
	for in, want := range map[string]string{
		mark + line + line:        "good good",
		mark + line + mark + line: "good bad",
		mark + mark + line:        "bad",
		mark:                      "",
		mark + "\n" + line:        "bad good",
	} {
		var out strings.Builder
		if err := evaluateBatch(strings.NewReader(in), &out, newBatchEvaluator(robots.Google, "*")); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, `"error":"not a question`) {
				got = append(got, "bad")
			} else {
				got = append(got, "good")
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

type errorWriter struct{ err error }

func (r errorWriter) Write([]byte) (int, error) { return 0, r.err }

// A client that waits for each answer before its next question gets the answer.
func TestEvaluateLinesFlushesEachResult(t *testing.T) {
	questions, write := io.Pipe()
	read, answers := io.Pipe()
	done := make(chan error)
	go func() { done <- evaluateBatch(questions, answers, newBatchEvaluator(robots.Google, "*")) }()
	for range 3 {
		if _, err := io.WriteString(write, `{"robots":""}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if n, err := read.Read(make([]byte, 1000)); err != nil || n == 0 {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if err := errors.Join(write.Close(), <-done); err != nil {
		t.Error(err)
	}
}

// Lines up to the maximum length are read completely, and the line after one that is too long is read.
func TestReadLine(t *testing.T) {
	if testing.Short() {
		t.Skip("long, with one goroutine")
	}
	t.Parallel()
	long := plaintext.MaxLineBytes - len(`{"robots":""}`+"\n")
	for _, tt := range []struct {
		size int
		ok   bool
	}{{0, true}, {1 << 20, true}, {long, true}, {long + 1, false}, {3 * long, false}} {
		var out strings.Builder
		line := `{"robots":"` + strings.Repeat("#", tt.size) + `"}` + "\n"
		if err := evaluateBatch(strings.NewReader(line+"bad\n"), &out,
			newBatchEvaluator(robots.Google, "*")); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if len(lines) != 3 || strings.Contains(lines[0], "error") == tt.ok ||
			!strings.Contains(lines[1], "not a question") {
			t.Errorf("%d bytes: %q", tt.size, lines)
		}
	}
}

// BenchmarkEvaluateLines answers a thousand questions about a hundred files.
func BenchmarkEvaluateLines(b *testing.B) {
	var in bytes.Buffer
	for i := range 1000 {
		file := fmt.Sprintf(`User-agent: *\nDisallow: /%d\n`, i/10) + strings.Repeat(`Disallow: /some/page\n`, 200)
		fmt.Fprintf(&in, `{"robots":"%s","agent":"x","url":"https://example.com/page/%d","dialect":"google-oss"}`+"\n",
			file, i)
	}
	b.SetBytes(int64(in.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if err := evaluateBatch(bytes.NewReader(in.Bytes()), io.Discard,
			newBatchEvaluator(robots.Google, "*")); err != nil {
			b.Fatal(err)
		}
	}
}
