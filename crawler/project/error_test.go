package project

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestProjectErrorsHideValues: an error about a project file repeats neither a value of the file
// nor an unknown field name. The text for the operator's terminal shortens them.
func TestProjectErrorsHideValues(t *testing.T) {
	const secret = "geheim"
	for _, text := range []string{
		"geheim: 1\n", "agent: {geheim: 1}\n", "geheim\n", "- geheim\n", "root:geheim:0:0\ndaemon:geheim:1:1\n",
		"# \xff\ngeheim: [\n", "fetch: {headers: {X-Key: geheim, X-Key: geheim}}\n",
		"agent:\n  contact: geheim: geheim\n",
		"geheim: 1\ngeheim: 2\n", "project: &geheim geheim\n", "project: !geheim geheim\n",
		"project: *geheim\n", `project: "\geheim"`,
		"limits: {workers: geheim}\n", "limits: {pages: 'geheim\"geheim'}\n", "limits: {requests_per_second: geheim}\n",
		"robots: {meta: geheim}\n", "politeness: {delay: geheim}\n", "fetch: {max_body: geheim}\n", "seeds: geheim\n",
		"seeds: {geheim: geheim}\n", "store: geheim\n", "fetch: {headers: [geheim]}\n", "project: {geheim: geheim}\n",
		"politeness: {hosts: {a.example: {expires: geheim}}}\n", "politeness: {hosts: {a.example: geheim}}\n",
		minimalFile + "project: Geheim geheim\n", minimalFile + "agent: {product: 'geheim 1'}\n",
		"agent: {product: 'geheim`\" 1'}\n",
		minimalFile + "scope: {within: geheim}\n", minimalFile + "scope: {exclude: ['geheim(']}\n",
		minimalFile + "scope: {exclude: ['`(geheim`']}\n",
		minimalFile + "scope: {exclude: ['\"geheim(`x\"']}\n", minimalFile + "scope: {params: {drop: ['geheim&']}}\n",
		minimalFile + "robots: {dialect: geheim}\n",
		minimalFile + "robots: {purpose: [geheim]}\n", minimalFile + "revisit: {mode: geheim}\n",
		minimalFile + "fetch: {content_types: [geheim]}\n",
		minimalFile + "fetch: {connect_to: ['geheim']}\n", minimalFile + "fetch: {connect_to: ['a:geheim:b:80']}\n",
		minimalFile + "fetch: {headers: {X-Key: \"geheim\\n\"}}\n",
		minimalFile + "fetch: {proxy: 'geheim://me:geheim@geheim'}\n",
		minimalFile + "fetch: {proxy: 'http://me:geheim@p.example:geheim'}\n",
		minimalFile + "politeness: {window: {hours: geheim}}\n",
		minimalFile + "politeness: {window: {hours: 22:00-06:00, zone: geheim}}\n",
		minimalFile + "store: {redis: {addresses: [geheim]}}\n",
		minimalFile + "store: {redis: {addresses: ['127.0.0.1:1'], prefix: 'geheim{'}}\n",
		minimalFile + "store: {redis: {addresses: ['127.0.0.1:1'], durability: geheim}}\n",
		minimalFile + "agent: {signature: {keys: [k], directory: geheim}}\n",
		"agent: {contact: geheim}\nseeds: [https://a.example/]\n",
		"agent: {contact: mailto:a@b.example}\nseeds: [geheim]\n",
	} {
		_, err := Read(testfile.Write(t, "p.yaml", text))
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		if strings.Contains(strings.ToLower(err.Error()), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: the error repeats a value: %v", text, err)
		}
		if !strings.Contains(err.Error(), "p.yaml:") {
			t.Errorf("%q: the error does not name the file: %v", text, err)
		}
		long := strings.ReplaceAll(text, secret, strings.Repeat(secret, 1000))
		if _, err := Read(testfile.Write(t, "p.yaml", long)); err == nil || len(DetailedErrorText(err)) > 2000 {
			t.Errorf("%q with a long value: the detail has %d bytes: %.400v", text, len(DetailedErrorText(err)), err)
		}
	}
}
