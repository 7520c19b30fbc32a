// Package v1alpha1 is the API of the-loop: coding agents hosted as real terminal
// sessions in tmux on build hosts, kept as Kubernetes objects.
//
// A WorkItemSession or StandingSession says what should run; a SessionMessage is
// one text for one session; a SessionClass says how sessions run; a SessionHost is
// one build host with its agent.
//
// +kubebuilder:object:generate=true
// +groupName=theloop.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "theloop.dev", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers every kind of this package in a scheme.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&WorkItemSession{}, &WorkItemSessionList{},
		&StandingSession{}, &StandingSessionList{},
		&SessionMessage{}, &SessionMessageList{},
		&SessionClass{}, &SessionClassList{},
		&SessionHost{}, &SessionHostList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
