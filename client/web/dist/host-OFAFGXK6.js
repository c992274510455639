import{e}from"./chunk-XIN3IODI.js";function p({route:o}){return e("p",{children:["Host ",o.name]})}export{p as Host};
