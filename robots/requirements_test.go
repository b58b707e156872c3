package robots

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestRequirements proves that each requirement has a test and each example a requirement. Every
// example must check something and, unless its dialect is classic, run in at least one dialect. For a
// requirement without examples, testdata/requirements-elsewhere.txt must name a test, or the reason
// why it has no test.
func TestRequirements(t *testing.T) {
	exercised := make(map[string]bool)
	for _, text := range robotstest.Lines(t, "testdata/robots-examples.jsonl") {
		var e example
		robotstest.Decode(t, text, &e)
		if e.Allowed == nil && e.CrawlDelay == nil && e.Sitemaps == nil && e.Host == nil && e.CleanURL == nil {
			t.Errorf("checks nothing: %s", text)
		}
		exercised[e.Req] = exercised[e.Req] || len(exampleDialects(t, e.Dialect)) > 0
	}
	for _, text := range robotstest.Lines(t, "testdata/fetch-examples.jsonl") {
		var x struct{ Req, Dialect, Want string } // package gate reads the other fields
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			t.Fatal(err)
		}
		if x.Want == "" {
			t.Errorf("checks nothing: %s", text)
		}
		exercised[x.Req] = exercised[x.Req] || len(exampleDialects(t, x.Dialect)) > 0
	}
	for _, text := range robotstest.Lines(t, "testdata/scope-examples.jsonl") {
		var e scopeExample
		robotstest.Decode(t, text, &e)
		exercised[e.Req] = true
	}
	want := robotstest.Lines(t, "testdata/requirements.txt")
	for _, req := range want {
		if !exercised[req] {
			t.Errorf("%s has no example that is run", req)
		}
	}
	for _, req := range slices.Sorted(maps.Keys(exercised)) {
		if !slices.Contains(want, req) {
			t.Errorf("%s has examples and is not in testdata/requirements.txt", req)
		}
	}
	elsewhere := requirementsTestedElsewhere(t)
	checkRequirementNumbers(t, slices.Concat(want, elsewhere))
}

// requirementsTestedElsewhere returns the requirements without examples. It fails the test if a test
// that is named for one of them does not exist.
func requirementsTestedElsewhere(t *testing.T) (reqs []string) {
	sources := map[string]string{} // the sources of the tests, by directory
	for _, text := range robotstest.Lines(t, "testdata/requirements-elsewhere.txt") {
		req, where, _ := strings.Cut(text, " ")
		dir, test, _ := strings.Cut(where, " ")
		reqs = append(reqs, req)
		if dir == "-" {
			continue
		}
		if sources[dir] == "" {
			sources[dir] = testSourceIn(t, filepath.Join("..", dir))
		}
		if test == "" || !strings.Contains(sources[dir], "\nfunc "+test+"(") {
			t.Errorf("%s: there is no %q in %s", req, test, dir)
		}
	}
	return reqs
}

// testSourceIn returns the source of all tests in a directory.
func testSourceIn(t *testing.T, dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// checkRequirementNumbers fails the test unless the numbers of each letter code run from 1 without gaps
// and repetitions.
func checkRequirementNumbers(t *testing.T, reqs []string) {
	count, highest := map[string]int{}, map[string]int{}
	for _, req := range reqs {
		letters, digits, _ := strings.Cut(req, "-")
		n, err := strconv.Atoi(digits)
		if err != nil {
			t.Errorf("%q is not a requirement code", req)
		}
		count[req]++
		highest[letters] = max(highest[letters], n)
	}
	for letters, last := range highest {
		for n := 1; n <= last; n++ {
			if req := fmt.Sprintf("%s-%02d", letters, n); count[req] != 1 {
				t.Errorf("%s is listed %d times", req, count[req])
			}
		}
	}
}
