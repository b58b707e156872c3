package extract

import "bytes"

// handleForm adds the action of a form with the method GET.
func (p *pageParser) handleForm() {
	a := &p.attrs
	if !isGETForm(a.method) {
		p.hasOtherForm = true
		return
	}
	p.hasGETForm = true
	p.addFormTarget(a.action)
}

// addFormAction adds the formaction of a button or an input element that submits by GET: it says so, or
// all forms of the page up to here do.
func (p *pageParser) addFormAction() {
	a := &p.attrs
	if a.formAction == nil || !isGETForm(a.formMethod) || a.formMethod == nil && (p.hasOtherForm || !p.hasGETForm) {
		return
	}
	p.addFormTarget(a.formAction)
}

// addFormTarget adds the target of a form, as written, if forms count. Its query does not: a browser that
// submits the form writes the fields in its place.
func (p *pageParser) addFormTarget(raw []byte) {
	if !p.scanner.IncludeForms {
		return
	}
	ref, _, _ := bytes.Cut(p.unescapedRef(raw), []byte("?"))
	p.addLink(Form, ref, parseRel(p.attrs.rel))
}

// isGETForm reports whether the method of a form, as written, stands for GET, as unknown ones do.
func isGETForm(raw []byte) bool {
	method := unescape(raw)
	return !equalFold(method, "post") && !equalFold(method, "dialog")
}
