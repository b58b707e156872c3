package extract

import "testing"

func TestMountPoint(t *testing.T) {
	for page, want := range map[string]string{
		`<body><noscript>Enable JavaScript</noscript><div id="root"></div><script src=/main.js></script>`: "id=root",
		`<script defer src=/a.js></script><DIV class=x ID='App'>Loading</DIV>`:                            "id=App",
		`<div id=__next></div><script>0</script>`:                                                         "id=__next",
		`<app-root></app-root><script src=main.js type=module></script>`:                                  "app-root",
		`<div id="root"></div>`:                                        "", // nothing fills it
		`<div id="roots" data-id="root"></div><script>0</script>`:      "",
		`<script>'<div id="root"></div>'</script>`:                     "",
		`<!-- <div id="root"></div> --><script>0</script>`:             "",
		`<textarea><div id="root"></div></textarea><script>0</script>`: "",
		`<p>text</p><script>analytics()</script>`:                      "",
		`<div id="root`: "",
		"":              "",
	} {
		if got := MountPoint([]byte(page)); got != want {
			t.Errorf("MountPoint(%q) = %q, want %q", page, got, want)
		}
	}
}
