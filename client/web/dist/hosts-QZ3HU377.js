import{e}from"./chunk-XIN3IODI.js";function p({route:o}){return e("p",{children:["Hosts ",o.name]})}export{p as Hosts};
