package testfile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// RotatedLines returns the lines of a rotated output, in order: the files NAME-*.jsonl and then
// name, the current one. It fails the test if a file ends within a line, if a rotated file is
// empty, or if a file of several lines has more than maxBytes; 0: no limit.
func RotatedLines(t testing.TB, name string, maxBytes int) []string {
	t.Helper()
	// The names of rotated files sort in the order of their age.
	full, err := filepath.Glob(strings.TrimSuffix(name, ".jsonl") + "-*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i, file := range append(full, name) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 0 && text[len(text)-1] != '\n' {
			t.Errorf("%s ends within a line", file)
		}
		n := bytes.Count(text, []byte("\n"))
		if maxBytes > 0 && len(text) > maxBytes && n > 1 {
			t.Errorf("%s has %d bytes in %d lines, want %d at most", file, len(text), n, maxBytes)
		}
		if i < len(full) && n == 0 {
			t.Errorf("%s is empty", file)
		}
		lines = slices.AppendSeq(lines, strings.Lines(string(text)))
	}
	return lines
}
