package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// TestProjectErrorsHideValues: no error about a project file repeats a value of it, or
// a name that is not a field's. The text for the operator's terminal repeats little of
// it.
func TestProjectErrorsHideValues(t *testing.T) {
	const secret = "geheim"
	for _, text := range []string{
		"geheim: 1\n", "agent: {geheim: 1}\n", "geheim\n", "- geheim\n", "root:geheim:0:0\ndaemon:geheim:1:1\n",
		"# \xff\ngeheim: [\n", "fetch: {headers: {X-Key: geheim, X-Key: geheim}}\n", "agent:\n  contact: geheim: geheim\n",
		"geheim: 1\ngeheim: 2\n", "project: &geheim geheim\n", "project: !geheim geheim\n", "project: *geheim\n", `project: "\geheim"`,
		"limits: {workers: geheim}\n", "limits: {pages: 'geheim\"geheim'}\n", "limits: {requests_per_second: geheim}\n",
		"robots: {meta: geheim}\n", "politeness: {delay: geheim}\n", "fetch: {max_body: geheim}\n", "seeds: geheim\n",
		"seeds: {geheim: geheim}\n", "store: geheim\n", "fetch: {headers: [geheim]}\n", "project: {geheim: geheim}\n",
		"politeness: {hosts: {a.example: {expires: geheim}}}\n", "politeness: {hosts: {a.example: geheim}}\n",
		minimalProject + "project: Geheim geheim\n", minimalProject + "agent: {product: 'geheim 1'}\n", "agent: {product: 'geheim`\" 1'}\n",
		minimalProject + "scope: {within: geheim}\n", minimalProject + "scope: {exclude: ['geheim(']}\n", minimalProject + "scope: {exclude: ['`(geheim`']}\n",
		minimalProject + "scope: {exclude: ['\"geheim(`x\"']}\n", minimalProject + "scope: {params: {drop: ['geheim&']}}\n", minimalProject + "robots: {dialect: geheim}\n",
		minimalProject + "robots: {purpose: [geheim]}\n", minimalProject + "revisit: {mode: geheim}\n", minimalProject + "fetch: {content_types: [geheim]}\n",
		minimalProject + "fetch: {connect_to: ['geheim']}\n", minimalProject + "fetch: {connect_to: ['a:geheim:b:80']}\n",
		minimalProject + "fetch: {headers: {X-Key: \"geheim\\n\"}}\n", minimalProject + "fetch: {proxy: 'geheim://me:geheim@geheim'}\n",
		minimalProject + "fetch: {proxy: 'http://me:geheim@p.example:geheim'}\n", minimalProject + "politeness: {window: {hours: geheim}}\n",
		minimalProject + "politeness: {window: {hours: 22:00-06:00, zone: geheim}}\n", minimalProject + "store: {redis: {addresses: [geheim]}}\n",
		minimalProject + "store: {redis: {addresses: ['127.0.0.1:1'], prefix: 'geheim{'}}\n", minimalProject + "store: {redis: {addresses: ['127.0.0.1:1'], durability: geheim}}\n",
		minimalProject + "agent: {signature: {keys: [k], directory: geheim}}\n",
		"agent: {contact: geheim}\nseeds: [https://a.example/]\n", "agent: {contact: mailto:a@b.example}\nseeds: [geheim]\n",
	} {
		_, err := ReadProject(writeTempFile(t, "p.yaml", text))
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		if strings.Contains(strings.ToLower(err.Error()), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error repeats a value: %v", text, err)
		}
		if !strings.Contains(err.Error(), "p.yaml:") {
			t.Errorf("%q: the error does not name the file: %v", text, err)
		}
		long := strings.ReplaceAll(text, secret, strings.Repeat(secret, 1000))
		if _, err := ReadProject(writeTempFile(t, "p.yaml", long)); err == nil || len(detailedErrorText(err)) > 2000 {
			t.Errorf("%q with a long value: the detail has %d bytes: %.400v", text, len(detailedErrorText(err)), err)
		}
	}
}

// What a daemon says of a broken project file, to callers and in its log, repeats none of
// its values, whether they are in the file or in one that a symbolic link leads to.
func TestServeHidesValuesOfFiles(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t)
	var log bytes.Buffer
	f.log = slog.NewTextHandler(&log, nil)
	f.putProjectFile("header", minimalProject+"fetch: {headers: {Authorization: 'Bearer geheim', cookie: geheim}}\nlimits: {workers: none}\n")
	f.putProjectFile("proxy", minimalProject+"fetch: {proxy: 'ftp://me:geheim@geheim.example'}\n")
	f.putProjectFile("syntax", "fetch:\n  proxy: http://me:geheim@p.example: geheim\n")
	elsewhere := writeTempFile(t, "shadow", "root:geheim:19000:0:99999:7:::\nmail:geheim:1::::\n")
	if err := os.Symlink(elsewhere, filepath.Join(f.projectFilesPath(), "link"+projectExt)); err != nil {
		t.Fatal(err)
	}
	f.start(true)
	events, err := f.Events(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, wantText := range map[string]string{
		"header": "header.yaml:4:19: limits.workers: ", "proxy": "proxy.yaml:3:16: fetch.proxy: ", "syntax": "syntax.yaml:2:", "link": "link.yaml:1:1: ",
	} {
		for _, text := range []string{f.getProject(name).FileError, f.reloadAndFind(name).Error} {
			if !strings.Contains(text, wantText) || strings.Contains(text, "geheim") {
				t.Errorf("%s: the error is %q; want %q, and no value", name, text, wantText)
			}
		}
		if err := f.ControlProject(t.Context(), name, api.ActionStart); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s is started, or the answer repeats a value: %v", name, err)
		}
	}
	if _, err := f.PutProject(t.Context(), "put", []byte("geheim: 1\n")); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("a file that is put: %v", err)
	}
	f.putProjectFile("header", "limits: {workers: geheim}\n")
	f.reloadAndFind("header")
	for e := range events {
		if strings.Contains(e.Message, "geheim") {
			t.Errorf("the event %+v repeats a value", e)
		}
		if e.Type == "file" && e.Project == "header" {
			break
		}
	}
	f.stop()
	if text := log.String(); strings.Contains(text, "geheim") || !strings.Contains(text, "proxy.yaml:3:16") {
		t.Errorf("the log repeats a value, or lacks an error:\n%s", text)
	}
}
