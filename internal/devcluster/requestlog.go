package devcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Request is one answered request in a request log.
type Request struct {
	// User is the authenticated user's name, Groups its groups.
	User   string
	Groups []string
	// Agent is the client's User-Agent header.
	Agent string
	// Verb is the API verb in lower case: get, list, watch, create, update,
	// patch, delete or deletecollection; for other paths the HTTP method.
	Verb string
	// URI is the request's path and query.
	URI string
	// Group, Resource, Subresource, Namespace and Name say what it was about.
	// Resource is "" for paths that are no API objects, such as /readyz. Name is ""
	// for lists, and for a create that was refused before its body was read.
	Group, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status of the answer.
	Code int
	// Time is when the request was received.
	Time time.Time
}

// IsWrite says whether the request was one that changes objects, successful or not.
// A dry run counts as one; a review (subject access, token) does too.
func (r Request) IsWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// ReadRequestLog reads the file named by Options.RequestLog, oldest answer first.
// A watch appears when it starts and again when it ends. A line that is still
// being written is left out; no file yet means no requests.
func ReadRequestLog(path string) ([]Request, error) {
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the request log: %w", err)
	}
	var out []Request
	for n, line := range bytes.SplitAfter(b, []byte("\n")) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		r, err := parseRequest(line)
		if err != nil {
			return nil, fmt.Errorf("cannot read line %d of the request log %s: %w", n+1, path, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// parseRequest reads one audit event.
func parseRequest(line []byte) (Request, error) {
	var e struct {
		RequestURI string `json:"requestURI"`
		Verb       string `json:"verb"`
		User       struct {
			Username string   `json:"username"`
			Groups   []string `json:"groups"`
		} `json:"user"`
		UserAgent string `json:"userAgent"`
		ObjectRef struct {
			Group       string `json:"apiGroup"`
			Resource    string `json:"resource"`
			Subresource string `json:"subresource"`
			Namespace   string `json:"namespace"`
			Name        string `json:"name"`
		} `json:"objectRef"`
		ResponseStatus struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
		Received time.Time `json:"requestReceivedTimestamp"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return Request{}, err
	}
	return Request{
		User: e.User.Username, Groups: e.User.Groups, Agent: e.UserAgent, Verb: e.Verb, URI: e.RequestURI,
		Group: e.ObjectRef.Group, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Code: e.ResponseStatus.Code, Time: e.Received,
	}, nil
}
