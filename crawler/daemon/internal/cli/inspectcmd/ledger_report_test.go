package inspectcmd

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/storage/ledger"
)

// The report prints a warning, and still concludes that all is right.
func TestPrintVerifyReportWithWarnings(t *testing.T) {
	var out strings.Builder
	report := &ledger.VerifyReport{Warnings: []ledger.Finding{{File: "ledger-000001.jsonl", Line: 7, RecordNumber: 7,
		Message: "the clock was set"}}, UnlistedWarnings: 2}
	if err := printVerifyReport(&out, report, ledger.VerifyOptions{}); err != nil || !report.OK() {
		t.Error(err, report.OK())
	}
	for _, want := range []string{"warning: ledger-000001.jsonl:7: record 7 the clock was set\n",
		"all is right, with 3 warnings\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not say %q", out.String(), want)
		}
	}
}
