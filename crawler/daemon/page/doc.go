// Package page serves the web page of a daemon: its projects, their hosts, the robots.txt rules
// that apply to them, brakes and the audit, as HTML over an api.Daemon.
//
//	p := page.New(daemon, audit)
//	server := api.NewServer(daemon, api.ServerConfig{APIKeys: keys, AuditLog: audit, PageHandler: p})
//
// The package decides what people see and which forms they get. Package api decides who may see a
// page: New's handler must be mounted as api.ServerConfig.PageHandler.
//
// Begin reading at newWebUIHandler in routes.go, the table of pages and forms; then render.go for
// pages, and actions.go for forms. templates holds a file for each page, and assets the style
// sheet and the scripts. The program contains the folder escaped instead of templates: html/template
// has escaped these templates, and package internal/escapedhtml executes them. After a change of a
// template, TestEscapedTemplates writes the folder with -update.
//
// The server renders all HTML. Every action is a form that works without JavaScript. The scripts
// only fetch the page again and replace the parts that changed, so that there is one renderer.
// The page has no inline script or style and loads nothing from other servers; it works under
// the policy "default-src 'self'". Host names, URLs and robots.txt files come from strangers:
// the templates escape them, and the views limit how much of them is shown.
//
// The package starts no goroutine, holds no lock, and keeps no state between requests. It never
// makes a request to a crawled site.
package page
