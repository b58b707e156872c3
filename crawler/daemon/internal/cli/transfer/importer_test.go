package transfer

import (
	"io"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// importedOrigin has the lines of an origin with one URL, its fingerprint (64 bits of FNV-1a over /1)
// and a note.
const importedOrigin = `{"type":"origin","origin":"http://a.example","host":{"name":"a.example","gap_ns":0,"slots":1,"strikes":0}}
{"type":"url","url":"http://a.example/1","state":"queued","source":"seed","class":0,"depth":0}
{"type":"seen","origin":"http://a.example","fingerprints":"B9aXB7SdKr0="}
{"type":"note","store":"robots","origin":"http://a.example","key":"k","value":"dg=="}
`

// An importer accepts only complete exports, and a second import of the same export changes nothing.
func TestImporter(t *testing.T) {
	for _, tt := range []struct{ name, lines, want string }{
		{"whole", importedOrigin + `{"type":"end","origins":1,"urls":1,"seen":1,"notes":1}`, ""},
		{"cut short", importedOrigin, "its last line, of type end, is missing"},
		{"a line lost", importedOrigin + `{"type":"end","origins":1,"urls":2,"seen":1,"notes":1}`, "lines are missing"},
		{"more than all", `{"type":"end","origins":0,"urls":0,"seen":0,"notes":0}` + "\n" + importedOrigin,
			"more lines follow the line of type end"},
		{"unknown line", `{"type":"page"}`, `the line has type "page"`},
		{"unknown field", `{"type":"end","pages":1}`, `unknown field "pages"`},
		{"other host", strings.Replace(importedOrigin, `"name":"a`, `"name":"b`, 1), `"b.example" is not the host`},
		{"half a fingerprint", `{"type":"seen","origin":"http://a.example","fingerprints":"AAAA"}`,
			"not a multiple of 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stores := datadir.CrawlStores{Frontier: memory.New(memory.Config{}), Robots: memory.New(memory.Config{})}
			run := func(m *importer) error {
				next := strings.SplitAfter(tt.lines, "\n")
				return m.importLines(t.Context(), func() (string, error, bool) {
					if len(next) == 0 || next[0] == "" {
						return "", nil, false
					}
					line := next[0]
					next = next[1:]
					return line, nil, true
				})
			}
			newImporter := func(out io.Writer) *importer {
				return &importer{stdout: out, stderr: terminal.NewStatusLineWriter(io.Discard), stores: stores,
					saveProject: func() error { return nil }, marker: datadir.ImportMarker{ExportHeaderSHA256: "x"}}
			}
			var out strings.Builder
			err := run(newImporter(&out))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if err := datadir.RequireCompleteImport(stores.Frontier); err == nil {
					t.Error("the partial import counts as complete")
				}
				return
			}
			if err != nil || out.String() != "imported: 1 origins, 1 URLs, 1 seen, 1 notes; queued: 1, resting: 0, "+
				"parked: 0\n" {
				t.Errorf("it says %q, %v", out.String(), err)
			}
			out.Reset()
			if err := run(newImporter(&out)); err != nil || !strings.Contains(out.String(), "was imported before") {
				t.Errorf("the second time it says %q, %v", out.String(), err)
			}
		})
	}
}
