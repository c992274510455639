import{e}from"./chunk-XIN3IODI.js";function r({route:p}){return e("p",{children:["Compare ",p.name]})}export{r as Compare};
