"use strict";(self.rspackChunktorchlab_jupyterlab=self.rspackChunktorchlab_jupyterlab||[]).push([[232],{475(t,o,r){var e=r(601),a=r.n(e),n=r(314),l=(r.n(n))()(a());l.push([t.id,`/* The panel in JupyterLab's own colours: every theme that sets the --jp variables fits. */

.tl-panel {
  --tl-allocated: var(--jp-brand-color1);
  --tl-reserved: color-mix(in srgb, var(--jp-brand-color1) 45%, var(--jp-layout-color1));
  --tl-peak: var(--jp-warn-color1);
  --tl-limit: var(--jp-border-color1);

  display: flex;
  flex-direction: column;
  min-width: 220px;
  overflow: hidden;
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size1);
  font-variant-numeric: tabular-nums;
}

.tl-panel [hidden] {
  display: none;
}

/* ---- head ---- */

.tl-head {
  display: flex;
  align-items: center;
  gap: 8px;
  flex: none;
  padding: 8px 12px;
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
}

.tl-logo {
  display: flex;
  flex: none;
}

.tl-logo svg {
  width: 22px;
  height: 22px;
}

.tl-logo svg .jp-icon3 {
  fill: var(--jp-brand-color1);
}

.tl-titles {
  display: flex;
  flex-direction: column;
  flex: 1;
  min-width: 0;
  line-height: 1.25;
}

.tl-title {
  font-weight: 600;
}

.tl-where {
  overflow: hidden;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
  text-overflow: ellipsis;
  white-space: nowrap;
}

.tl-badge {
  flex: none;
  padding: 1px 8px 1px 6px;
  border: var(--jp-border-width) solid var(--jp-border-color2);
  border-radius: 9px;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
}

.tl-badge::before {
  content: '';
  display: inline-block;
  width: 7px;
  height: 7px;
  margin-right: 5px;
  border-radius: 50%;
  background: var(--jp-success-color1);
}

.tl-badge[data-state='busy']::before {
  background: var(--jp-warn-color1);
  animation: tl-pulse 1s ease-in-out infinite alternate;
}

@keyframes tl-pulse {
  to {
    opacity: 0.35;
  }
}

@media (prefers-reduced-motion: reduce) {
  .tl-badge[data-state='busy']::before {
    animation: none;
  }
}

/* ---- devices ---- */

.tl-body {
  flex: 1;
  overflow-y: auto;
  padding: 10px 12px 16px;
}

.tl-device {
  margin-bottom: 10px;
  padding: 10px 12px;
  border: var(--jp-border-width) solid var(--jp-border-color2);
  border-radius: 6px;
  background: var(--jp-layout-color1);
}

.tl-device-head {
  display: flex;
  align-items: baseline;
  gap: 6px;
  margin-bottom: 8px;
}

.tl-name {
  flex: none;
  font-family: var(--jp-code-font-family);
  font-weight: 600;
}

.tl-what {
  flex: 1;
  min-width: 0;
  overflow: hidden;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
  text-overflow: ellipsis;
  white-space: nowrap;
}

.tl-now {
  flex: none;
  font-size: var(--jp-ui-font-size2);
  font-weight: 600;
}

/* ---- the last minute ---- */

.tl-figure {
  position: relative;
  margin: 0 0 10px;
  padding-bottom: 14px;
}

.tl-spark {
  display: block;
  width: 100%;
  height: 52px;
  border-bottom: var(--jp-border-width) solid var(--jp-border-color1);
  background: var(--jp-layout-color2);
}

.tl-spark-grid {
  stroke: var(--jp-border-color2);
  stroke-width: 1;
  vector-effect: non-scaling-stroke;
}

.tl-spark-area {
  fill: var(--tl-allocated);
  fill-opacity: 0.2;
}

.tl-spark-line {
  fill: none;
  stroke: var(--tl-allocated);
  stroke-linejoin: round;
  stroke-width: 1.5;
  vector-effect: non-scaling-stroke;
}

.tl-axis {
  position: absolute;
  color: var(--jp-ui-font-color2);
  font-size: 10px;
  line-height: 14px;
}

.tl-axis-top {
  top: 1px;
  left: 4px;
}

.tl-axis-left {
  bottom: 0;
  left: 0;
}

.tl-axis-right {
  right: 0;
  bottom: 0;
}

/* ---- bars ---- */

.tl-row {
  display: grid;
  grid-template-columns: 64px minmax(24px, 1fr) 58px;
  align-items: center;
  gap: 8px;
  height: 20px;
}

.tl-label {
  white-space: nowrap;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
}

.tl-share {
  margin-left: 5px;
  color: var(--jp-ui-font-color1);
  font-weight: 600;
}

.tl-value {
  font-size: var(--jp-ui-font-size0);
  text-align: right;
  white-space: nowrap;
}

.tl-track {
  height: 8px;
  overflow: hidden;
  border-radius: 2px;
  background: var(--jp-layout-color2);
  box-shadow: inset 0 0 0 1px var(--jp-border-color3);
}

.tl-fill {
  width: 100%;
  height: 100%;
  background: var(--tl-allocated);
  transform: scaleX(0);
  transform-origin: left;
}

.tl-reserved .tl-fill {
  background: var(--tl-reserved);
}

.tl-peak .tl-fill {
  background: var(--tl-peak);
}

.tl-limit .tl-fill {
  background: var(--jp-ui-font-color2);
}

.tl-tight .tl-limit .tl-fill {
  background: var(--jp-error-color1);
}

.tl-device-foot {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 14px;
  margin-top: 6px;
  padding-top: 6px;
  border-top: var(--jp-border-width) solid var(--jp-border-color2);
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
}

.tl-count b {
  color: var(--jp-ui-font-color1);
  font-weight: 600;
}

.tl-tight .tl-share {
  color: var(--jp-error-color1);
}

/* ---- nothing to draw ---- */

.tl-empty {
  display: flex;
  flex-direction: column;
  align-items: center;
  padding: 28px 8px;
  text-align: center;
}

.tl-empty-picture {
  display: grid;
  grid-template-columns: repeat(5, 18px);
  gap: 4px;
  margin-bottom: 18px;
}

.tl-empty-block {
  height: 18px;
  border: 1px dashed var(--jp-border-color1);
  border-radius: 3px;
}

.tl-empty-block:nth-child(1),
.tl-empty-block:nth-child(2),
.tl-empty-block:nth-child(4),
.tl-empty-block:nth-child(6) {
  border-style: solid;
  border-color: transparent;
  background: var(--jp-layout-color3);
}

.tl-empty-title {
  margin: 0 0 6px;
  font-size: var(--jp-ui-font-size2);
  font-weight: 600;
}

.tl-empty-text {
  margin: 0 0 10px;
  color: var(--jp-ui-font-color2);
  line-height: 1.4;
}

.tl-panel .tl-code {
  padding: 6px 10px;
  border: var(--jp-border-width) solid var(--jp-border-color2);
  border-radius: 4px;
  background: var(--jp-layout-color2);
  color: var(--jp-content-font-color1);
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-code-font-size);
  user-select: all;
  white-space: nowrap;
}

.tl-button {
  margin-top: 14px;
  padding: 6px 14px;
  border: none;
  border-radius: 4px;
  background: var(--jp-brand-color1);
  color: #fff;
  font-family: inherit;
  font-size: var(--jp-ui-font-size1);
  cursor: pointer;
}

.tl-button:hover:enabled {
  background: var(--jp-brand-color0);
}

.tl-button:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: 2px;
}

.tl-button:disabled {
  opacity: 0.6;
  cursor: default;
}

.tl-problem {
  margin: 10px 0 0;
  color: var(--jp-error-color1);
  font-size: var(--jp-ui-font-size0);
  overflow-wrap: anywhere;
}
`,""]),r.d(o,{},{A:l})},314(t){t.exports=function(t){var o=[];return o.toString=function(){return this.map(function(o){var r="",e=void 0!==o[5];return o[4]&&(r+="@supports (".concat(o[4],") {")),o[2]&&(r+="@media ".concat(o[2]," {")),e&&(r+="@layer".concat(o[5].length>0?" ".concat(o[5]):""," {")),r+=t(o),e&&(r+="}"),o[2]&&(r+="}"),o[4]&&(r+="}"),r}).join("")},o.i=function(t,r,e,a,n){"string"==typeof t&&(t=[[null,t,void 0]]);var l={};if(e)for(var i=0;i<this.length;i++){var p=this[i][0];null!=p&&(l[p]=!0)}for(var c=0;c<t.length;c++){var s=[].concat(t[c]);e&&l[s[0]]||(void 0!==n&&(void 0===s[5]||(s[1]="@layer".concat(s[5].length>0?" ".concat(s[5]):""," {").concat(s[1],"}")),s[5]=n),r&&(s[2]&&(s[1]="@media ".concat(s[2]," {").concat(s[1],"}")),s[2]=r),a&&(s[4]?(s[1]="@supports (".concat(s[4],") {").concat(s[1],"}"),s[4]=a):s[4]="".concat(a)),o.push(s))}},o}},601(t){t.exports=function(t){return t[1]}},72(t){var o=[];function r(t){for(var r=-1,e=0;e<o.length;e++)if(o[e].identifier===t){r=e;break}return r}function e(t,e){for(var a={},n=[],l=0;l<t.length;l++){var i=t[l],p=e.base?i[0]+e.base:i[0],c=a[p]||0,s="".concat(p," ").concat(c);a[p]=c+1;var d=r(s),f={css:i[1],media:i[2],sourceMap:i[3],supports:i[4],layer:i[5]};if(-1!==d)o[d].references++,o[d].updater(f);else{var u=function(t,o){var r=o.domAPI(o);return r.update(t),function(o){o?(o.css!==t.css||o.media!==t.media||o.sourceMap!==t.sourceMap||o.supports!==t.supports||o.layer!==t.layer)&&r.update(t=o):r.remove()}}(f,e);e.byIndex=l,o.splice(l,0,{identifier:s,updater:u,references:1})}n.push(s)}return n}t.exports=function(t,a){var n=e(t=t||[],a=a||{});return function(t){t=t||[];for(var l=0;l<n.length;l++){var i=r(n[l]);o[i].references--}for(var p=e(t,a),c=0;c<n.length;c++){var s=r(n[c]);0===o[s].references&&(o[s].updater(),o.splice(s,1))}n=p}}},659(t){var o={};t.exports=function(t,r){var e=function(t){if(void 0===o[t]){var r=document.querySelector(t);if(window.HTMLIFrameElement&&r instanceof window.HTMLIFrameElement)try{r=r.contentDocument.head}catch(t){r=null}o[t]=r}return o[t]}(t);if(!e)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");e.appendChild(r)}},540(t){t.exports=function(t){var o=document.createElement("style");return t.setAttributes(o,t.attributes),t.insert(o,t.options),o}},56(t,o,r){t.exports=function(t){var o=r.nc;o&&t.setAttribute("nonce",o)}},825(t){t.exports=function(t){if("u"<typeof document)return{update:function(){},remove:function(){}};var o=t.insertStyleElement(t);return{update:function(r){var e,a,n;e="",r.supports&&(e+="@supports (".concat(r.supports,") {")),r.media&&(e+="@media ".concat(r.media," {")),(a=void 0!==r.layer)&&(e+="@layer".concat(r.layer.length>0?" ".concat(r.layer):""," {")),e+=r.css,a&&(e+="}"),r.media&&(e+="}"),r.supports&&(e+="}"),(n=r.sourceMap)&&"u">typeof btoa&&(e+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(n))))," */")),t.styleTagTransform(e,o,t.options)},remove:function(){var t;null===(t=o).parentNode||t.parentNode.removeChild(t)}}}},113(t){t.exports=function(t,o){if(o.styleSheet)o.styleSheet.cssText=t;else{for(;o.firstChild;)o.removeChild(o.firstChild);o.appendChild(document.createTextNode(t))}}},579(t,o,r){var e=r(72),a=r.n(e),n=r(825),l=r.n(n),i=r(659),p=r.n(i),c=r(56),s=r.n(c),d=r(540),f=r.n(d),u=r(113),v=r.n(u),h=r(475),b={};b.styleTagTransform=v(),b.setAttributes=s(),b.insert=p().bind(null,"head"),b.domAPI=l(),b.insertStyleElement=f(),a()(h.A,b),h.A&&h.A.locals&&h.A.locals}}]);