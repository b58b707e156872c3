package extract

import "regexp"

// mountPointAttribute matches the id of an element that a script fills: the names that React, Vue,
// Next.js, Nuxt, Gatsby, SvelteKit and their templates use.
var mountPointAttribute = regexp.MustCompile(
	`(?i)(?:^|[\s"'])id\s*=\s*["']?(root|react-root|app|__next|__nuxt|___gatsby|svelte)["'\s/>]`)

// MountPoint returns the element of a page that its scripts fill in a browser, such as "id=root", or
// "app-root" for an element of that name. It returns "" if the page has no script or no such element. If
// the page also has no links, a crawler without a browser sees nothing of it.
func MountPoint(body []byte) string {
	t, mountPoint, hasScript := tokenizer{input: body}, "", false
	for mountPoint == "" || !hasScript {
		name, end, ok := t.nextTag()
		start := t.pos
		if !ok || !t.readAttributes(nil) {
			return ""
		}
		if end {
			continue
		}
		switch e := elementKindByName(name); {
		case e == script:
			hasScript = true
			t.skipScript()
		case e > plaintext:
			t.readRawText(elementNames[e]) // elements in it are text
		case equalFold(name, "app-root"): // Angular
			mountPoint = "app-root"
		default:
			if m := mountPointAttribute.FindSubmatch(t.input[start:t.pos]); m != nil {
				mountPoint = "id=" + string(m[1])
			}
		}
	}
	return mountPoint
}
