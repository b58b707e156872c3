package supervisor

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// The errors that a daemon returns and logs for an invalid project file repeat none of its values,
// whether the file is regular or a symbolic link leads to it.
func TestServeHidesValuesOfFiles(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t)
	var log bytes.Buffer
	f.Log = slog.NewTextHandler(&log, nil)
	f.PutProjectFile("header", daemontest.MinimalProject+"fetch: {headers: {Authorization: 'Bearer geheim', cookie: "+
		"geheim}}\nlimits: {workers: none}\n")
	f.PutProjectFile("proxy", daemontest.MinimalProject+"fetch: {proxy: 'ftp://me:geheim@geheim.example'}\n")
	f.PutProjectFile("syntax", "fetch:\n  proxy: http://me:geheim@p.example: geheim\n")
	elsewhere := testfile.Write(t, "shadow", "root:geheim:19000:0:99999:7:::\nmail:geheim:1::::\n")
	if err := os.Symlink(elsewhere, filepath.Join(f.ProjectFilesPath(), "link"+projectExt)); err != nil {
		t.Fatal(err)
	}
	f.start(true)
	events, err := f.SubscribeEvents(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, wantText := range map[string]string{
		"header": "header.yaml:4:19: limits.workers: ", "proxy": "proxy.yaml:3:16: fetch.proxy: ",
		"syntax": "syntax.yaml:2:", "link": "link.yaml:1:1: ",
	} {
		for _, text := range []string{f.GetProject(name).FileError, f.ReloadAndFind(name).Error} {
			if !strings.Contains(text, wantText) || strings.Contains(text, "geheim") {
				t.Errorf("%s: the error is %q; want %q, and no value", name, text, wantText)
			}
		}
		if err := f.ControlProject(t.Context(), name, api.ActionStart); err == nil ||
			strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s is started, or the answer repeats a value: %v", name, err)
		}
	}
	if _, err := f.PutProject(t.Context(), "put", []byte("geheim-7: 1\n")); err == nil ||
		strings.Contains(err.Error(), "geheim") {
		t.Errorf("a file that is put: %v", err)
	}
	f.PutProjectFile("header", "limits: {workers: geheim}\n")
	f.ReloadAndFind("header")
	for e := range events {
		if strings.Contains(e.Message, "geheim") {
			t.Errorf("the event %+v repeats a value", e)
		}
		if e.Type == "file" && e.Project == "header" {
			break
		}
	}
	f.Stop()
	if text := log.String(); strings.Contains(text, "geheim") || !strings.Contains(text, "proxy.yaml:3:16") {
		t.Errorf("the log repeats a value, or lacks an error:\n%s", text)
	}
}

// The API and the folder of project files report all errors of a file at once, those of a daemon's own
// rules among them.
func TestServeReportsAllErrors(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t)
	f.start(true)
	const text = "agent: {contact: 'mailto:a@b.example'}\nseed: [http://a.example/]\nhandler: none\n" +
		"store: {path: elsewhere}\nlimits: {workers: none}\noutput: {jsonl: /etc/a}\n"
	f.PutProjectFile("folder", text)
	_, err := f.PutProject(t.Context(), "api", []byte(text))
	for name, tt := range map[string]struct {
		got  string
		want []string
	}{
		"folder": {f.ReloadAndFind("folder").Error, []string{"4 errors:", `:2:1: unknown field seed; did you mean seeds?`,
			`:3:10: handler: `, `:4:15: store.path: `, `:5:19: limits.workers: `}},
		"api": {fmt.Sprint(err), []string{"5 errors:", `:2:1: unknown field seed; did you mean seeds?`, `:3:10: handler: `,
			`:4:15: store.path: `, `:5:19: limits.workers: `, `:6:17: output.jsonl: `}},
	} {
		lines := strings.Split(tt.got, "\n")
		for i, want := range tt.want {
			if i >= len(lines) || !strings.Contains(lines[i], want) {
				t.Errorf("%s: line %d lacks %q:\n%s", name, i, want, tt.got)
			}
		}
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %d lines, want %d:\n%s", name, len(lines), len(tt.want), tt.got)
		}
	}
}
