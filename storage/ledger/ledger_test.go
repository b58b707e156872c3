package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Verify has no findings in a ledger of several segments and runs, though one run was killed, and derives
// every verdict again.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir, 6)
	got := verifySigned(t, dir)
	for _, f := range got.Findings {
		t.Error(f)
	}
	t.Logf("%+v", *got)
	if text, err := json.Marshal(got); err != nil || !bytes.Contains(text, []byte(`"findings":[]`)) {
		t.Errorf("as JSON %s, %v, want a list of no findings", text, err)
	}
	const visits, refusals = 3 * 6 * 5, 3 * 6
	if got.Requests != visits+1 || got.Responses != visits || got.UnansweredRequests != 1 || got.Refusals != refusals ||
		got.CheckedVerdicts != visits+1+refusals || got.Runs != 3 || !got.Closed || got.RobotsFiles != 3 ||
		got.Segments < 3 || got.UnsignedRecords != 0 {
		t.Errorf("found %+v", *got)
	}
}

// The program in docs/ledger.md, which shares no code with this package, accepts the chain of a ledger, and
// refuses that of an edited one.
func TestDocumentedCheck(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	docs, err := os.ReadFile("../../docs/ledger.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(docs), "```python\n")
	program, _, found := strings.Cut(program, "```")
	if !found {
		t.Fatal("docs/ledger.md has no program")
	}
	dir := t.TempDir()
	writeSample(t, dir, 2)
	files := readFiles(t, dir)
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, "ledger-") {
			text = append(text, decompressSegment(t, name, files[name])...)
		}
	}
	check := func(text []byte) (string, error) {
		c := exec.Command(python, "-c", program)
		c.Stdin = bytes.NewReader(text)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := check(text); err != nil || out != fmt.Sprintf("%d records\n", bytes.Count(text, []byte("\n"))) {
		t.Errorf("the program prints %q, %v", out, err)
	}
	if out, err := check(bytes.Replace(text, []byte(`"status":200`), []byte(`"status":404`), 1)); err == nil {
		t.Errorf("the program accepts an edited ledger: %q", out)
	}
}
